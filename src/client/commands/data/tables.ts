/** Shared by the commands of `svc data`: options, the fields of a table, and reported defects. */
import { Fault } from '../../../errors/fault.ts'
import type { Json } from '../../../value/strict-json.ts'
import { ValidationError } from '../../../value/validation-error.ts'
import { parseFields } from '../../../value/validator-json.ts'
import type { FieldsJson } from '../../../value/validators.ts'
import { listTables } from '../../../wire/operations/catalogs.ts'
import { argument, flag, option } from '../../contexts.ts'
import type { Remote } from '../../roots/remotes.ts'

export const TARGET = option('TARGET', 'Such as channel:production; needed without svc dev')
export const TAGGED = flag('Print and read tagged values, whose types are exact')
export const TABLE = argument('TABLE', 'The table, such as messages')

/** Reads the fields of a table. Throws PRODUCT_NOT_FOUND, which names the tables of the target. */
export async function fieldsOf(remote: Remote, target: string, table: string): Promise<FieldsJson> {
  const { tables } = await remote.call(listTables, { query: { target } })
  const found = tables.find(({ name }) => name === table)
  if (found !== undefined) return parseFields(found.fields as Json)
  const known = tables.map(({ name }) => name).join(', ') || 'none'
  throw new Fault('PRODUCT_NOT_FOUND', { detail: `The target has no table ${table}: ${known}.` })
}

/** Throws PRODUCT_INVALID that names the place, below `within`, and the rule. */
export function valid<T>(read: (fields: FieldsJson) => T, fields: FieldsJson = {}, within = ''): T {
  try {
    return read(fields)
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error
    const path = within + error.path
    throw new Fault('PRODUCT_INVALID', { violations: [{ path, rule: error.rule }] })
  }
}
