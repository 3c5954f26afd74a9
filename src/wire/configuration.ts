/** Variables and secrets of the Environment (contract/wire.md, Variables and secrets). */
import { CONFIGURATION_NAME, CONFIGURATION_VALUE_BYTES_MAX } from '../value/configuration.ts'
import {
  documented,
  idField,
  listUpTo,
  Micros,
  PAGE_MAX,
  PageLimit,
  Revision,
  text,
  U64,
} from './fields.ts'
import { OperationField } from './idempotency-records.ts'
import { type Infer, schema } from './schema.ts'

/** Bytes of the body that sets a value (contract/management.md, Limits). */
export const CONFIGURATION_BODY_BYTES_MAX = 72 * 1024

export const ConfigurationName = text(CONFIGURATION_NAME, 'a name such as API_KEY')
const Kind = schema("'variable' | 'secret'")

export const ConfigurationSet = documented(
  schema({
    expectedRevision: Revision,
    kind: Kind,
    value: documented(schema('string'), {
      description: `at most ${CONFIGURATION_VALUE_BYTES_MAX} bytes of UTF-8`,
      maxLength: CONFIGURATION_VALUE_BYTES_MAX,
    }),
    changedAtMicros: Micros,
  }),
  {
    // An empty secret is usually an unset variable or an empty pipe of the caller.
    if: { properties: { kind: { const: 'secret' } }, required: ['kind'] },
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema.
    then: { properties: { value: { minLength: 1 } } },
  },
)

export const ConfigurationDelete = schema({
  expectedRevision: Revision,
  changedAtMicros: Micros,
})

const Entry = schema({
  name: ConfigurationName,
  revision: U64,
  createdAtMicros: Micros,
  updatedAtMicros: Micros,
})

/** An entry. No response contains the value of a secret. */
export const EntryField = schema([
  { '...': Entry, kind: "'variable'", value: 'string' },
  '|',
  { '...': Entry, kind: "'secret'" },
])
export type EntryField = Infer<typeof EntryField>

export const ConfigurationList = schema({
  version: '1',
  revision: U64,
  entries: [EntryField, '[]'],
})
export type ConfigurationList = Infer<typeof ConfigurationList>

export const ChangeField = schema({
  /** Revision of the whole configuration after the change. */
  revision: U64,
  name: ConfigurationName,
  kind: Kind,
  action: "'set' | 'delete'",
  operatorId: idField('opr'),
  changedAtMicros: Micros,
})
export type ChangeField = Infer<typeof ChangeField>

export const ConfigurationChanged = schema({
  version: '1',
  change: ChangeField,
  operation: OperationField,
})
export type ConfigurationChanged = Infer<typeof ConfigurationChanged>

export const HistoryQuery = schema({
  'limit?': PageLimit,
  /** Returns changes before this revision of the configuration. */
  'after?': text(/^[1-9][0-9]{0,15}$/, 'a cursor of this list'),
})

export const ConfigurationHistory = schema({
  version: '1',
  entries: listUpTo(ChangeField, PAGE_MAX),
  /** `after` of the next page. */
  next: [U64, '|', 'null'],
})
export type ConfigurationHistory = Infer<typeof ConfigurationHistory>
