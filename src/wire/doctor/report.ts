/** The report of the doctor (contract/wire.md, Doctor). */
import { text } from '../fields.ts'
import { type Infer, schema } from '../schema.ts'

export const DoctorReport = schema({
  version: '1',
  checks: [
    {
      /** Not a list of names: a client shows checks that only a newer server has. */
      name: text(/^[a-z][a-z0-9-]{0,63}$/, 'the name of a check'),
      status: "'ok' | 'warning' | 'failed' | 'skipped'",
      seen: 'string',
      why: 'string',
      command: 'string | null',
    },
    '[]',
  ],
})
export type DoctorReport = Infer<typeof DoctorReport>
export type CheckResult = DoctorReport['checks'][number]
export type CheckStatus = CheckResult['status']
