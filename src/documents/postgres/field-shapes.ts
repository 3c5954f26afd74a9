/** The fields that documents of each table may have, as the writer stores them. */
import type { Connection } from '../../database/connection.ts'
import type { FieldShape } from '../../value/schema/field-shapes.ts'
import { parseFieldShape } from '../index-rows.ts'
import { text } from './rows.ts'

const SET = `
  insert into field_shapes (table_name, shape)
  select * from unnest($1::text[], $2::text[])
  on conflict (table_name) do update set shape = excluded.shape`

export async function loadFieldShapes(connection: Connection): Promise<Map<string, FieldShape>> {
  const { rows } = await connection.query('select table_name, shape from field_shapes')
  return new Map(
    rows.map((row) => [text(row, 'table_name'), parseFieldShape(text(row, 'shape'))] as const),
  )
}

/** Stores the shapes of these tables in place of the earlier ones. */
export async function setFieldShapes(
  connection: Connection,
  shapes: ReadonlyMap<string, FieldShape>,
): Promise<void> {
  const texts = [...shapes.values()].map((shape) => JSON.stringify(shape))
  await connection.query(SET, [[...shapes.keys()], texts])
}
