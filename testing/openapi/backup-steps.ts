/** Steps of the walk over all operations: a backup is made, listed and read. */
import { OPERATION_ID_HEADER } from '../../src/wire/idempotency-records.ts'
import type { Step, Walk } from './data-steps.ts'
import type { Origins } from './origins.ts'

const RECIPIENT = 'age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj'

export function backupSteps({ now, newId, from }: Walk, origins: () => Origins): readonly Step[] {
  const backup = () => ({ params: { backupId: from('createBackup', 'backupId') } })
  return [
    [
      'createBackup',
      201,
      () => ({
        headers: { [OPERATION_ID_HEADER]: newId('opn') },
        body: { recipients: [RECIPIENT], changedAtMicros: now() },
      }),
    ],
    ['listBackups', 200],
    ['readBackup', 200, backup],
    [
      'readBackupContent',
      200,
      async () => {
        await origins().backups.whenIdle()
        return backup()
      },
    ],
  ]
}
