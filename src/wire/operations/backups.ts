/** Backups: those that there are, a new one, and the files of one as an archive. */
import { BackupCreated, BackupList, BackupRequest, BackupState } from '../backups/backups.ts'
import { environmentOperation } from './operation.ts'

export const TAR_MEDIA_TYPE = 'application/x-tar'

export const listBackups = environmentOperation({
  method: 'GET',
  path: '/backups',
  name: 'listBackups',
  summary: 'Lists the newest whole backups, those that run and those that failed included.',
  capability: 'backups:manage',
  replies: { 200: BackupList },
  errors: ['PRODUCT_UNAVAILABLE'],
})

export const createBackup = environmentOperation({
  method: 'POST',
  path: '/backups',
  name: 'createBackup',
  summary: 'Starts a whole backup, which only its recipients can open. One runs at a time.',
  capability: 'backups:manage',
  operationId: 'required',
  body: { schema: BackupRequest },
  replies: { 200: BackupCreated, 201: BackupCreated },
  errors: ['PRODUCT_INVALID', 'PRODUCT_STATE_CONFLICT', 'PRODUCT_UNAVAILABLE'],
})

export const readBackup = environmentOperation({
  method: 'GET',
  path: '/backups/:backupId',
  name: 'readBackup',
  summary: 'Returns a backup and its progress.',
  capability: 'backups:manage',
  replies: { 200: BackupState },
  errors: ['PRODUCT_UNAVAILABLE'],
})

export const readBackupContent = environmentOperation({
  method: 'GET',
  path: '/backups/:backupId/content',
  name: 'readBackupContent',
  summary: 'Returns the files of a complete backup, encrypted as they are, as a tar archive.',
  capability: 'backups:manage',
  mediaTypes: [TAR_MEDIA_TYPE],
  cache: 'private, no-store',
  replies: { 200: 'bytes' },
  compresses: false,
  errors: ['PRODUCT_STATE_CONFLICT', 'PRODUCT_UNAVAILABLE', 'UNAVAILABLE'],
})

export const backupOperations = { listBackups, createBackup, readBackup, readBackupContent }
