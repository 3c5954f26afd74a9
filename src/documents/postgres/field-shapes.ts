/** The fields that documents of each table may have, as the writer stores them. */
import type { Connection } from '../../database/connection.ts'
import type { FieldShape } from '../../value/schema/field-shapes.ts'
import { CompactTexts, parseNames } from '../compact-texts.ts'
import { parseFieldShape } from '../index-rows.ts'
import { text } from './rows.ts'

const SET = `
  insert into field_shapes (table_name, shape, names)
  select * from unnest($1::text[], $2::text[], $3::text[])
  on conflict (table_name) do update set shape = excluded.shape, names = excluded.names`

export async function loadFieldShapes(connection: Connection): Promise<Map<string, FieldShape>> {
  const { rows } = await connection.query('select table_name, shape from field_shapes')
  return new Map(
    rows.map((row) => [text(row, 'table_name'), parseFieldShape(text(row, 'shape'))] as const),
  )
}

export async function loadTexts(connection: Connection): Promise<CompactTexts> {
  const { rows } = await connection.query('select table_name, names from field_shapes')
  const texts = new CompactTexts()
  for (const row of rows) texts.set(text(row, 'table_name'), parseNames(text(row, 'names')))
  return texts
}

/**
 * Stores the shapes of these tables in place of the earlier ones. Returns the field names of each
 * table that have a code once that is durable.
 */
export async function setFieldShapes(
  connection: Connection,
  texts: CompactTexts,
  shapes: ReadonlyMap<string, FieldShape>,
): Promise<ReadonlyMap<string, readonly string[]>> {
  const names = new Map([...shapes].map(([table, shape]) => [table, texts.namesWith(table, shape)]))
  const column = (values: Iterable<unknown>) => Array.from(values, (value) => JSON.stringify(value))
  await connection.query(SET, [[...shapes.keys()], column(shapes.values()), column(names.values())])
  return names
}
