/** Variables and secrets of the Environment (wire decisions, section 3). */
import * as z from 'zod'
import { CONFIGURATION_NAME, CONFIGURATION_VALUE_BYTES_MAX } from '../value/configuration.ts'
import { idField, Micros, PAGE_MAX, PageLimit, Revision, text, U64 } from './fields.ts'
import { OperationField } from './operations.ts'
import { documented } from './schema.ts'

/** Bytes of the body that sets a value (Document 1, Limits). */
export const CONFIGURATION_BODY_BYTES_MAX = 72 * 1024

export const ConfigurationName = text(CONFIGURATION_NAME, 'a name such as API_KEY')
const Kind = z.enum(['variable', 'secret'])

export const ConfigurationSet = documented(
  z.strictObject({
    expectedRevision: Revision,
    kind: Kind,
    value: documented(z.string(), {
      description: `at most ${CONFIGURATION_VALUE_BYTES_MAX} bytes of UTF-8`,
      maxLength: CONFIGURATION_VALUE_BYTES_MAX,
    }),
    changedAtMicros: Micros,
  }),
  {
    // An empty secret is a pipe or a variable that was not filled.
    if: { properties: { kind: { const: 'secret' } }, required: ['kind'] },
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema.
    then: { properties: { value: { minLength: 1 } } },
  },
)

export const ConfigurationDelete = z.strictObject({
  expectedRevision: Revision,
  changedAtMicros: Micros,
})

const Entry = z.strictObject({
  name: ConfigurationName,
  revision: U64,
  createdAtMicros: Micros,
  updatedAtMicros: Micros,
})

/** A secret has no value here, nor anywhere else that is read. */
export const EntryField = z.discriminatedUnion('kind', [
  Entry.extend({ kind: z.literal('variable'), value: z.string() }),
  Entry.extend({ kind: z.literal('secret') }),
])
export type EntryField = z.infer<typeof EntryField>

export const ConfigurationList = z.strictObject({
  version: z.literal(1),
  revision: U64,
  entries: EntryField.array(),
})
export type ConfigurationList = z.infer<typeof ConfigurationList>

export const ChangeField = z.strictObject({
  /** That the whole configuration had after it. */
  revision: U64,
  name: ConfigurationName,
  kind: Kind,
  action: z.enum(['set', 'delete']),
  operatorId: idField('opr'),
  changedAtMicros: Micros,
})
export type ChangeField = z.infer<typeof ChangeField>

export const ConfigurationChanged = z.strictObject({
  version: z.literal(1),
  change: ChangeField,
  operation: OperationField,
})
export type ConfigurationChanged = z.infer<typeof ConfigurationChanged>

export const HistoryQuery = z.strictObject({
  limit: PageLimit.exactOptional(),
  /** Changes before this revision of the configuration. */
  after: text(/^[1-9][0-9]{0,15}$/, 'a cursor of this list').exactOptional(),
})

export const ConfigurationHistory = z.strictObject({
  version: z.literal(1),
  entries: ChangeField.array().max(PAGE_MAX),
  /** `after` of the next page. */
  next: U64.nullable(),
})
export type ConfigurationHistory = z.infer<typeof ConfigurationHistory>
