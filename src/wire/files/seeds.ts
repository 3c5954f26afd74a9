/** The file of `svc dev --seed`: Mutations that fill an Environment that has no document yet. */
import type { Json } from '../../value/strict-json.ts'
import { declaredSchema, type Infer, schema } from '../schema.ts'

export const SeedFile = schema([
  {
    /** Name of a Mutation; it may be internal. */
    function: 'string',
    /** Plain JSON, as `svc call` takes it. */
    'arguments?': declaredSchema<Json>('unknown'),
  },
  '[]',
])
export type SeedFile = Infer<typeof SeedFile>
