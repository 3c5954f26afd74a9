/** Crons: their list, their activation and runs by hand (contract/wire.md, Crons). */
import { ACTIVATIONS, CRON_NAME, CRONS_MAX, OVERLAPS } from '../value/scheduling/crons.ts'
import {
  idField,
  integer,
  listUpTo,
  Micros,
  Revision,
  TargetField,
  text,
  textUpTo,
  U64,
} from './fields.ts'
import { OperationField } from './idempotency-records.ts'
import { type Infer, schema } from './schema.ts'

export const CronName = text(CRON_NAME, 'the name of a Cron')

export const CronsQuery = schema({
  /** Left out: the Release whose Crons are in force. */
  'target?': TargetField,
})

const ActivationField = schema(['===', ...ACTIVATIONS])

const CRON = {
  name: CronName,
  /** Five fields; null for an interval. */
  schedule: [textUpTo(512), '|', 'null'],
  /** Zone of the expression; null for an interval. */
  timeZone: [textUpTo(64), '|', 'null'],
  /** The interval; null for an expression. */
  every: [schema({ milliseconds: integer(1) }), '|', 'null'],
  function: textUpTo(512),
  overlap: ['===', ...OVERLAPS],
  /** Revision of the activation: 0 before the first change. */
  revision: U64,
  activation: ActivationField,
  lastRunAtMicros: [Micros, '|', 'null'],
  /** Null where the Cron is disabled or not in force. */
  nextRunAtMicros: [Micros, '|', 'null'],
} as const

export const CronList = schema({
  version: '1',
  releaseId: idField('rel'),
  /** Sorted by name. */
  crons: listUpTo(schema(CRON), CRONS_MAX),
})
export type CronList = Infer<typeof CronList>

export const CronActivate = schema({
  expectedRevision: Revision,
  activation: ActivationField,
  changedAtMicros: Micros,
})

export const CronActivated = schema({ version: '1', ...CRON, operation: OperationField })
export type CronActivated = Infer<typeof CronActivated>
