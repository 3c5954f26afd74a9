/** The samples of a guide as the files of one Workspace. */
import { assert } from '../../src/errors/assert.ts'
import { codeBlocks } from './markdown.ts'

const SCHEMA = 'schema.ts'
const FILE = /^\/\/ ((?:functions\/[\w-]+|tests\/[\w-]+\.test|schema|crons|http)\.ts)\n/
const TABLES = /^import .* from 'svc'\n\nexport default defineSchema\(\{\n([\s\S]*)\n\}\)$/

/**
 * Returns the files by path. The first line of every sample in TypeScript names its file; samples
 * of schema.ts declare some of the tables each, and become one schema.
 */
export function workspaceSamples(guide: string): Record<string, string> {
  const files: Record<string, string> = {}
  const tables: string[] = []
  for (const { text } of codeBlocks(guide).filter(({ language }) => language === 'ts')) {
    const path = FILE.exec(text)?.[1]
    assert(path !== undefined, `a sample does not begin with its file: ${text.slice(0, 60)}`)
    assert(files[path] === undefined, `two samples are ${path}`)
    const code = text.slice(text.indexOf('\n') + 1)
    if (path === SCHEMA) tables.push(tablesOf(code))
    else files[path] = `${code}\n`
  }
  const schema = `export default defineSchema({\n${tables.join('\n\n')}\n})\n`
  return { ...files, [SCHEMA]: `import { defineSchema, table, v } from 'svc'\n\n${schema}` }
}

function tablesOf(schema: string): string {
  const tables = TABLES.exec(schema)?.[1]
  assert(tables !== undefined, `a sample is no whole schema.ts: ${schema.slice(0, 60)}`)
  return tables
}
