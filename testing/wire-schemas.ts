/** Lists the schemas of `src/wire`, for tests of rules that all of them follow. */
import { readdirSync } from 'node:fs'
import { isFault } from '../src/errors/fault.ts'
import { read } from '../src/wire/reading/read.ts'
import { isSchema, type Schema } from '../src/wire/schema.ts'

const FOLDER = new URL('../src/wire/', import.meta.url)
/** Limits of a query are texts, but their JSON Schema describes numbers. */
const PAGED = [
  'PageLimit',
  'AuditQuery',
  'HistoryQuery',
  'LogQuery',
  'OperatorsQuery',
  'ScheduledQuery',
  'SessionsQuery',
]

/** Returns the exported schemas whose JSON Schema describes their data, with their names. */
export async function declaredSchemas(): Promise<[string, Schema<unknown>][]> {
  const files = readdirSync(FOLDER, { recursive: true })
    .map(String)
    .filter((name) => /^(?:identity\/)?[a-z-]+\.ts$/.test(name))
  const modules = await Promise.all(
    files.map((file): Promise<Record<string, unknown>> => import(new URL(file, FOLDER).href)),
  )
  return modules
    .flatMap((exported) => Object.entries(exported))
    .filter((entry): entry is [string, Schema<unknown>] => isSchema(entry[1]))
    .filter(([name]) => !PAGED.includes(name))
}

/** Returns the rules that the data breaks; none if the schema accepts it. */
export function rulesAgainst(schema: Schema<unknown>, data: unknown): readonly string[] {
  try {
    read(schema, data, 'REQUEST_INVALID')
    return []
  } catch (error) {
    if (!isFault(error)) throw error
    return error.violations.map(({ rule }) => rule)
  }
}
