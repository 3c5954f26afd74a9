/** Faults of backups that the doctor must find. The installation has no settings of backups. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Fault, Site } from './doctor-site.ts'

const RECIPIENT = 'age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj'

/** Settings of a target that exists and has no backup. */
function target({ directory }: Site) {
  const path = join(directory, 'backups')
  mkdirSync(path, { recursive: true })
  return { SERVICE_BACKUP_RECIPIENTS: RECIPIENT, SERVICE_BACKUP_DIRECTORY: path }
}

function rehearsing(site: Site) {
  const path = join(site.directory, 'rehearsal.key')
  writeFileSync(path, 'AGE-SECRET-KEY-1', { mode: 0o600 })
  return { ...target(site), SERVICE_BACKUP_REHEARSAL_IDENTITY_FILE: path }
}

const EMPTY = { 'backup-recipients': 'ok', 'backup-age': 'failed' } as const

export const BACKUP_FAULTS: readonly Fault[] = [
  {
    name: 'no continuous backups',
    red: { 'backup-recipients': 'warning' },
    inject: () => undefined,
  },
  {
    name: 'a target of backups that is not mounted',
    red: { 'backup-recipients': 'ok', 'backup-target': 'failed' },
    inject: (site) => {
      const path = join(site.directory, 'not-mounted')
      return { settings: { ...target(site), SERVICE_BACKUP_DIRECTORY: path } }
    },
  },
  {
    name: 'a target without a whole backup',
    red: EMPTY,
    inject: (site) => ({ settings: target(site) }),
  },
  {
    name: 'rehearsals that never ran',
    red: { ...EMPTY, 'backup-rehearsal': 'warning' },
    inject: (site) => ({ settings: rehearsing(site) }),
  },
  {
    name: 'a backup that could not be restored',
    red: { ...EMPTY, 'backup-rehearsal': 'failed' },
    inject: (site) => {
      const rehearsal = {
        version: 1,
        historyId: `hst_${'0'.repeat(26)}`,
        finishedAtMicros: String(BigInt(Date.now()) * 1_000n),
        failureCode: 'BACKUP_CORRUPT',
        sequence: null,
        documents: null,
        merkle: null,
        passedAtMicros: null,
      }
      const path = join(site.root, 'rehearsal.json')
      writeFileSync(path, JSON.stringify(rehearsal), { mode: 0o600 })
      return { settings: rehearsing(site) }
    },
  },
]
