/** Variables and secrets of the Environment (wire decisions, section 3). */
import { CONFIGURATION_NAME } from '../value/configuration.ts'
import { idField, Micros, PAGE_MAX, PageLimit, Revision, U64 } from './fields.ts'
import { OperationField } from './operations.ts'
import { message } from './schema.ts'

/** Bytes of the body that sets a value (Document 1, Limits). */
export const CONFIGURATION_BODY_BYTES_MAX = 72 * 1024

export const ConfigurationName = message(CONFIGURATION_NAME).describe('a name such as API_KEY')
const Kind = message("'variable' | 'secret'")

export const ConfigurationSet = message({
  expectedRevision: Revision,
  kind: Kind,
  value: 'string',
  changedAtMicros: Micros,
})

export const ConfigurationDelete = message({
  expectedRevision: Revision,
  changedAtMicros: Micros,
})

const Entry = message({
  name: ConfigurationName,
  revision: U64,
  createdAtMicros: Micros,
  updatedAtMicros: Micros,
})

/** A secret has no value here, nor anywhere else that is read. */
export const EntryField = Entry.merge({ kind: "'variable'", value: 'string' }).or(
  Entry.merge({ kind: "'secret'" }),
)
export type EntryField = typeof EntryField.infer

export const ConfigurationList = message({
  version: '1',
  revision: U64,
  entries: EntryField.array(),
})
export type ConfigurationList = typeof ConfigurationList.infer

export const ChangeField = message({
  /** That the whole configuration had after it. */
  revision: U64,
  name: ConfigurationName,
  kind: Kind,
  action: "'set' | 'delete'",
  operatorId: idField('opr'),
  changedAtMicros: Micros,
})
export type ChangeField = typeof ChangeField.infer

export const ConfigurationChanged = message({
  version: '1',
  change: ChangeField,
  operation: OperationField,
})
export type ConfigurationChanged = typeof ConfigurationChanged.infer

export const HistoryQuery = message({
  'limit?': PageLimit,
  /** Changes before this revision of the configuration. */
  'after?': message(/^[1-9][0-9]{0,15}$/).describe('a cursor of this list'),
})

export const ConfigurationHistory = message({
  version: '1',
  entries: ChangeField.array().atMostLength(PAGE_MAX),
  /** `after` of the next page. */
  next: U64.or('null'),
})
export type ConfigurationHistory = typeof ConfigurationHistory.infer
