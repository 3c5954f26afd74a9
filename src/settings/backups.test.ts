import { expect, it } from 'vitest'
import { BACKUP_S3, RECIPIENT } from '../../testing/environments/backup-rows.ts'
import { BASE, ROOT } from '../../testing/environments/environments.ts'
import { parseSettings } from './settings.ts'

function backupsOf(given: Readonly<Record<string, string>>) {
  return parseSettings({ ...BASE, ...ROOT, ...given }, 'check').product!.backups
}

it('backups need settings, unless an operator asks for one', () => {
  expect(backupsOf({})).toBeNull()
})

it('a directory and recipients make continuous backups with the defaults', () => {
  const given = { SERVICE_BACKUP_RECIPIENTS: RECIPIENT, SERVICE_BACKUP_DIRECTORY: '/mnt//backups/' }
  expect(backupsOf(given)).toEqual({
    recipients: [RECIPIENT],
    target: { kind: 'directory', path: '/mnt/backups' },
    baseIntervalMillis: 24 * 3_600_000,
    retentionDays: 30,
    retentionBases: 7,
    includesPepper: false,
    rehearsalIdentityPath: null,
  })
})

it('a bucket may have a prefix and its own keys', () => {
  const backups = backupsOf({
    ...BACKUP_S3,
    SERVICE_BACKUP_RECIPIENTS: RECIPIENT,
    SERVICE_BACKUP_S3_PREFIX: 'production/backups/',
    SERVICE_BACKUP_BASE_INTERVAL: '7d',
    SERVICE_BACKUP_RETENTION_DAYS: '90',
    SERVICE_BACKUP_RETENTION_BASES: '3',
    SERVICE_BACKUP_PEPPER: 'include',
  })
  expect(backups).toMatchObject({
    target: { kind: 's3', prefix: 'production/backups/', s3: { region: 'us-east-1' } },
    baseIntervalMillis: 7 * 86_400_000,
    retentionDays: 90,
    retentionBases: 3,
    includesPepper: true,
  })
  expect(JSON.stringify(backups)).not.toContain('canary-secret')
})

it('an identity of rehearsals is named by the path of its file', () => {
  const backups = backupsOf({
    SERVICE_BACKUP_RECIPIENTS: RECIPIENT,
    SERVICE_BACKUP_DIRECTORY: '/mnt/backups',
    SERVICE_BACKUP_REHEARSAL_IDENTITY_FILE: '/etc//svc/rehearsal.key',
  })
  expect(backups).toMatchObject({ rehearsalIdentityPath: '/etc/svc/rehearsal.key' })
})

it('recipients alone leave backups to operators who ask for them', () => {
  expect(backupsOf({ SERVICE_BACKUP_RECIPIENTS: RECIPIENT })).toMatchObject({ target: null })
})
