// One file out of all: the built code and style stand inline in the page, because the program that
// serves it has one page embedded, and because the page with its data inside must need nothing else.
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";

const PAGE = fileURLToPath(new URL("../src/view/page.html", import.meta.url));
const OUT = process.env.TIDEMARK_PAGE ?? PAGE;

// `</script` and `<!--` in a string of the code would end, or confuse, the element it stands in.
function harmless(code: string): string {
	return code.replace(/<\/script/gi, "<\\/script").replace(/<!--/g, "<\\!--").trim();
}

function onePage(): Plugin {
	return {
		name: "one-page",
		enforce: "post",
		generateBundle(_options, bundle) {
			let code = "", style = "", page = "";
			for (const part of Object.values(bundle)) {
				if (part.type === "chunk") code += part.code;
				else if (part.fileName.endsWith(".css")) style += part.source;
				else if (part.fileName.endsWith(".html")) page = String(part.source);
			}
			// The functions as replacements: `$&` in the code is no pattern.
			page = page
				.replace(/\s*<script type="module"[^>]*><\/script>/, "")
				.replace(/\s*<link rel="stylesheet"[^>]*>/, () => `\n<style>${style.trim()}</style>`)
				.replace("<!--tidemark:data-->",
					() => `<script type="module">${harmless(code)}</script>\n<!--tidemark:data-->`);
			writeFileSync(OUT, page);
			for (const name of Object.keys(bundle)) delete bundle[name];
		},
	};
}

export default defineConfig({
	plugins: [onePage()],
	build: {
		target: "es2022",
		assetsInlineLimit: 1 << 20,
		modulePreload: false,
		emptyOutDir: false,
		write: false,
		reportCompressedSize: false,
	},
	// The address, because a bare system has no /etc/hosts that would resolve "localhost".
	server: { host: "127.0.0.1" },
	test: { include: ["test/**/*.test.ts"], environment: "node" },
});
