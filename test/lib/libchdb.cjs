// A server that speaks ClickHouse's HTTP, as far as tidemark asks it, with the newest engine (chDB) inside:
//     node libchdb.cjs PACKAGES FOLDER PORT
// FOLDER has its data, and files that go to and fro.
const fs = require("fs"), http = require("http"), path = require("path");
const { createRequire } = require("module");

const [packages, folder, port] = process.argv.slice(2);
const { Session } = createRequire(packages + "/x.js")("chdb");
const session = new Session(path.join(folder, "data"));
let files = 0;

// Blocks of ClickHouse's compression, each a frame of zstd behind a head of 25 bytes: the frames.
function framesOf(bytes) {
	const frames = [];
	for (let at = 0; at < bytes.length;) {
		if (bytes[at + 16] !== 0x90) throw new Error("Code: 89. not compressed by zstd");
		const size = bytes.readUInt32LE(at + 17);
		frames.push(bytes.subarray(at + 25, at + 16 + size));
		at += 16 + size;
	}
	return Buffer.concat(frames);
}

function insert(sql, bytes) {
	const file = path.join(folder, `in-${++files}.zst`);
	const [, table] = /^INSERT INTO (\S+) FORMAT Native$/.exec(sql);
	fs.writeFileSync(file, framesOf(bytes));
	try {
		const names = session.query(`DESCRIBE TABLE file('${file}', 'Native')`, "TabSeparated").trim().split("\n").map((line) => line.split("\t")[0]).join(", ");
		session.query(`INSERT INTO ${table} (${names}) SELECT ${names} FROM file('${file}', 'Native')`);
	} finally {
		fs.unlinkSync(file);
	}
	return "";
}

// Bytes would not come through as a text.
function bytesOf(sql) {
	const file = path.join(folder, `out-${++files}`);
	session.query(`INSERT INTO FUNCTION file('${file}', 'RowBinary') ${sql.replace(/ FORMAT RowBinary$/, "")}`);
	if (!fs.existsSync(file)) return "";
	const bytes = fs.readFileSync(file);
	fs.unlinkSync(file);
	return bytes;
}

http.createServer((request, response) => {
	const parts = [];
	request.on("data", (part) => parts.push(part));
	request.on("end", () => {
		const asked = new URL(request.url, "http://x").searchParams, body = Buffer.concat(parts);
		try {
			const answer = asked.get("decompress") ? insert(asked.get("query"), body)
				: body.toString().endsWith(" FORMAT RowBinary") ? bytesOf(body.toString()) : session.query(body.toString(), "TabSeparated");
			response.writeHead(200).end(answer);
		} catch (error) {
			response.writeHead(500).end(String(error.message));
		}
	});
}).listen(Number(port), "127.0.0.1");
