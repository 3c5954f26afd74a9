/** Checks of backups: who can open them, where they are, how old they are, whether they restore. */
import { check, counted, failed, ok, skipped, warning } from '../check.ts'

const HOUR_MILLIS = 3_600_000
const DAY_MILLIS = 24 * HOUR_MILLIS
/** A base takes time, and is retried after a failure. */
const BASE_DELAY_MILLIS = 2 * HOUR_MILLIS
/** Rehearsals are weekly: two were missed. */
const REHEARSAL_DAYS_MAX = 15

const REHEARSE = 'svc backup verify PATH --identity FILE --restore'
const NO_TARGET = skipped('no target of backups is set')

export const BACKUP_CHECKS = [
  check({
    name: 'backup-recipients',
    why: 'Without continuous backups, everything since the last copy is lost with the disk.',
    repair: 'svc docs backup',
    reads: ({ backups }) => backups,
    evaluate: ({ recipients, target }) => {
      if (recipients === 0) return warning('no recipient is set, and no backup is made by itself')
      if (target === null) return warning('no target is set, and backups are made on request alone')
      return ok(`${counted(recipients, 'recipient')} can open backups`)
    },
  }),
  check({
    name: 'backup-target',
    why: 'Commits wait for the target in bounded memory: what is beyond it is in no backup.',
    repair: 'svc docs backup',
    reads: ({ backups }) => backups,
    evaluate: ({ target }) => {
      if (target === null) return NO_TARGET
      if (target.failure !== null) return failed(`${target.location}: ${target.failure}`)
      return ok(`${target.location} answers${target.isWritable ? ' and can be written' : ''}`)
    },
  }),
  check({
    name: 'backup-age',
    why: 'A restore leads to the newest state in the target: all changes since it would be lost.',
    repair: 'svc backup create',
    reads: ({ backups }) => backups,
    evaluate: ({ target, baseIntervalMillis }) => {
      if (target === null) return NO_TARGET
      if (target.failure !== null) return skipped('the target cannot be read')
      const { newest } = target
      if (newest === null) return failed('the target has no whole backup of this Environment')
      const age = ageText(newest.ageMillis)
      const seen = `sequence ${newest.sequence} of ${age} ago can be restored`
      // Without changes a base is all that is written.
      const isOld = newest.ageMillis > baseIntervalMillis + BASE_DELAY_MILLIS
      return isOld ? failed(seen) : ok(seen)
    },
  }),
  check({
    name: 'backup-rehearsal',
    why: 'Only a restore proves a backup, and the day when it is needed is too late for that.',
    repair: REHEARSE,
    reads: ({ backups }) => backups,
    evaluate: ({ target, rehearses, rehearsal }) => {
      if (target === null) return NO_TARGET
      if (!rehearses) return skipped('this server rehearses no restore', REHEARSE)
      if (rehearsal === null) return warning('no restore has been rehearsed yet')
      const age = `${ageText(rehearsal.ageMillis)} ago`
      if (rehearsal.failureCode !== null) return failed(`${rehearsal.failureCode}, ${age}`)
      const isOld = rehearsal.ageMillis > REHEARSAL_DAYS_MAX * DAY_MILLIS
      return isOld ? warning(`it passed ${age}`) : ok(`it passed ${age}`)
    },
  }),
]

function ageText(millis: number): string {
  if (millis < HOUR_MILLIS) return counted(Math.max(0, Math.round(millis / 60_000)), 'minute')
  if (millis < 2 * DAY_MILLIS) return counted(Math.round(millis / HOUR_MILLIS), 'hour')
  return counted(Math.round(millis / DAY_MILLIS), 'day')
}
