// All rows of a Parquet file as hyparquet reads them: JSON, numbers of 64 bits as texts.
//     node librows.mjs PACKAGES FILE
import process from 'node:process'

const [home, path] = process.argv.slice(2)
const { asyncBufferFromFile, parquetReadObjects } = await import(`${home}/hyparquet/src/node.js`)
const { compressors } = await import(`${home}/hyparquet-compressors/src/index.js`)
const rows = await parquetReadObjects({ file: await asyncBufferFromFile(path), compressors })
process.stdout.write(JSON.stringify(rows, (_, value) => typeof value === 'bigint' ? String(value) : value))
