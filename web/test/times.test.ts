import { describe, expect, it } from "vitest";
import type { Mark } from "../src/ask/types";
import { bytes, count, csvLine, duration, moment, signedBytes } from "../src/base/text";
import { markWord, readableWord, timeNs } from "../src/base/times";
import { binaryStep, decimalStep, splitsOf } from "../src/parts/axis";

const mark = (name: string, nth: number, of: number, time_ns: number): Mark =>
	({ name, nth, of, time_ns, process_id: 0, pid: 1, tid: 1 });
const clock = {
	duration: 10e9, peak: 7e9,
	marks: [mark("load", 1, 2, 1e9), mark("load", 2, 2, 5e9), mark("v1+2s", 1, 1, 3e9)],
};

describe("words for moments", () => {
	it.each([
		["", 0], ["begin", 0], ["end", 10e9], ["peak", 7e9], ["12", null], ["2.5s", 2.5e9], ["350ms", 0.35e9], ["90us", 90e3],
		["7ns", 7], ["50%", 5e9], ["-3s", 7e9], ["mark:load", 1e9], ["mark:load#2", 5e9], ["mark:load#-1", 5e9],
		["mark:load+2s", 3e9], ["mark:load#2-10ms", 4.99e9], ["mark:v1+2s", 3e9], ["mark:none", null], ["soon", null], ["-11s", null],
	])("%s", (word, ns) => expect(timeNs(word, clock)).toBe(ns));
	it("name marks so that they are found again", () => {
		expect(markWord(clock.marks[1])).toBe("mark:load#2");
		expect(timeNs(markWord(clock.marks[2]), clock)).toBe(3e9);
	});
	it("are as short as they can be without being wrong", () => {
		expect(readableWord("1234567890ns")).toBe("1.23456789s");
		expect(readableWord("350000ns")).toBe("350us");
		expect(readableWord("mark:x")).toBe("mark:x");
	});
});

describe("figures", () => {
	it("read as the command line writes them", () => {
		expect([0, 840, 1023, 1024, 10485760, 1048575, -2048].map(bytes))
			.toEqual(["0 B", "840 B", "1023 B", "1.0 KiB", "10.0 MiB", "1.0 MiB", "−2.0 KiB"]);
		expect(signedBytes(12760)).toBe("+12.5 KiB");
		expect(count(1234567)).toBe("1,234,567");
		expect([7, 90e3, 291.456e6, 1.097e9, 1000e9].map(duration))
			.toEqual(["7 ns", "90.00 µs", "291.5 ms", "1.097 s", "16 min 40 s"]);
	});
	it("on an axis have as many places as its steps need", () => {
		expect(moment(0.25e9, 0.05e9)).toBe("0.25 s");
		expect(moment(90e9, 60e9)).toBe("1:30");
	});
	it("in CSV are no formulas and break no line", () => {
		expect(csvLine(["=1+1", 'a"b', "c,d\ne", -5, null])).toBe(`'=1+1,"a""b","c,d\ne",-5,\r\n`);
	});
});

describe("an axis", () => {
	it("has round steps", () => {
		expect(decimalStep(1.1, 10)).toBeCloseTo(0.2);
		expect(binaryStep(130000, 4)).toBe(32 * 1024);
		expect(splitsOf(0, 1, 0.25)).toEqual([0, 0.25, 0.5, 0.75, 1]);
	});
});
