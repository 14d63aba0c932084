import { describe, expect, it } from "vitest";
import { commandOf, FORM, parseAnswer, questionOf, viewOf } from "../src/fleet/words";

const PLACE = "clickhouse://db:8123/memory";

describe("the page about many traces", () => {
	it("is its address, whatever stands in it", () => {
		const chosen = FORM.parse("t=0&tab=trend&label=branch%3Dmain+'a%3Db+c'&site=operator+new(unsigned)&since=168h");
		expect(chosen).toMatchObject({ tab: "trend", labels: "branch=main 'a=b c'", site: "operator new(unsigned)", since: "168h", ago: "" });
		expect(FORM.parse(FORM.format(chosen))).toEqual(chosen);
		expect(FORM.parse("tab=<script>").tab).toBe("grew");
	});
	it("asks what its command line asks", () => {
		const chosen = FORM.parse("tab=trend&label=branch%3Dmain+'a%3Db+c'&site=it's&before=1.0&since=168h");
		expect(questionOf(chosen)).toEqual([["question", "trend"], ["label", "branch=main"], ["label", "a=b c"], ["since", "168h"], ["site", "it's"], ["n", "200"]]);
		expect(commandOf(chosen, PLACE)).toBe(`tidemark fleet trend ${PLACE} --label branch=main --label 'a=b c' --since 168h --site 'it'\\''s' --rows 200`);
		expect(commandOf({ ...chosen, tab: "grew" }, PLACE)).toBe(`tidemark fleet grew ${PLACE} --label branch=main --label 'a=b c' --since 168h --before 1.0 --rows 200`);
		expect(viewOf(PLACE, "1f")).toBe(`tidemark view '${PLACE}?trace=1f'`);
	});
	it("keeps all digits of a site's number, and leaves names alone", () => {
		const answer = parseAnswer<{ rows: { site: string; function: string }[] }>('{"rows":[{"function":"\\"site\\": 12345678901234567890","site": 12345678901234567890}]}');
		expect(answer.rows[0]).toEqual({ site: "12345678901234567890", function: '"site": 12345678901234567890' });
	});
});
