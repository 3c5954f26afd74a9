/** Indexes of PocketBase, which are SQL statements. */
import type { SourceIndex } from '../documents/source-values.ts'

const NAME = '[`"[]?(\\w+)[`"\\]]?'
const STATEMENT = new RegExp(
  `^\\s*create\\s+(unique\\s+)?index\\s+(?:if\\s+not\\s+exists\\s+)?${NAME}\\s+on\\s+${NAME}` +
    '\\s*\\(([^()]*)\\)\\s*;?\\s*$',
  'i',
)
const COLUMN = new RegExp(`^\\s*${NAME}\\s*(?:asc|desc)?\\s*$`, 'i')

/** Returns the index; null for one with a condition, an expression or a collation. */
export function indexOf(sql: string): SourceIndex | null {
  const match = STATEMENT.exec(sql)
  if (match === null) return null
  const [, unique, name, , list] = match
  const fields = list!.split(',').map((column) => COLUMN.exec(column)?.[1])
  if (fields.some((field) => field === undefined)) return null
  return { name: name!, fields: fields as string[], unique: unique !== undefined }
}
