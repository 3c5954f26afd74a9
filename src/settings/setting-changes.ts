/** Settings that versions have added, changed or removed, for operators who upgrade. */

export interface SettingChange {
  /** The first version with the change. */
  readonly version: string
  readonly name: string
  readonly change: 'new' | 'changed' | 'gone'
  /** Consequence for an operator who upgrades. */
  readonly note: string
}

/** A test compares them with the table of settings of the previous release. */
export const SETTING_CHANGES: readonly SettingChange[] = [
  {
    version: '0.5.0',
    name: 'SERVICE_APPLICATION_PROCESSES',
    change: 'new',
    note: 'processes that answer the application address; 1 without it, as before',
  },
  {
    version: '0.5.0',
    name: 'SERVICE_AUDIT_RETENTION_DAYS',
    change: 'new',
    note: 'records of the security audit are removed after 730 days without it',
  },
  {
    version: '0.5.0',
    name: 'SERVICE_BACKUP_BASE_INTERVAL',
    change: 'new',
    note: 'time from one whole backup to the next; 24h without it, where backups are continuous',
  },
  {
    version: '0.5.0',
    name: 'SERVICE_BACKUP_DIRECTORY',
    change: 'new',
    note: 'directory that backups go to continuously; none without it',
  },
  {
    version: '0.5.0',
    name: 'SERVICE_BACKUP_PEPPER',
    change: 'new',
    note: 'exactly include adds the pepper to backups, which lack it otherwise',
  },
  {
    version: '0.5.0',
    name: 'SERVICE_BACKUP_RECIPIENTS',
    change: 'new',
    note: 'recipients of age who can open backups; none are made by the server without it',
  },
  {
    version: '0.5.0',
    name: 'SERVICE_BACKUP_REHEARSAL_IDENTITY_FILE',
    change: 'new',
    note: 'a file with an identity of age, with which the server restores a backup each week',
  },
  {
    version: '0.5.0',
    name: 'SERVICE_BACKUP_RETENTION_BASES',
    change: 'new',
    note: 'whole backups that are kept however old they are; 7 without it',
  },
  {
    version: '0.5.0',
    name: 'SERVICE_BACKUP_RETENTION_DAYS',
    change: 'new',
    note: 'backups are removed after 30 days without it',
  },
  {
    version: '0.5.0',
    name: 'SERVICE_BACKUP_S3_ACCESS_KEY_ID',
    change: 'new',
    note: 'ID of the access key for the store of backups',
  },
  {
    version: '0.5.0',
    name: 'SERVICE_BACKUP_S3_BUCKET',
    change: 'new',
    note: 'bucket of the store of backups',
  },
  {
    version: '0.5.0',
    name: 'SERVICE_BACKUP_S3_ENDPOINT',
    change: 'new',
    note: 'S3-compatible store that backups go to continuously; none without it',
  },
  {
    version: '0.5.0',
    name: 'SERVICE_BACKUP_S3_PREFIX',
    change: 'new',
    note: 'begins the names in the bucket of backups; empty without it',
  },
  {
    version: '0.5.0',
    name: 'SERVICE_BACKUP_S3_REGION',
    change: 'new',
    note: 'region of the store of backups; us-east-1 without it',
  },
  {
    version: '0.5.0',
    name: 'SERVICE_BACKUP_S3_SECRET_ACCESS_KEY',
    change: 'new',
    note: 'secret of the access key for the store of backups',
  },
  {
    version: '0.5.0',
    name: 'SERVICE_MEMORY_TARGET',
    change: 'new',
    note: 'memory that caches and runner processes share; by default half of the machine',
  },
  {
    version: '0.5.0',
    name: 'SERVICE_REALTIME_MEMORY_MIB',
    change: 'new',
    note: 'memory of Realtime subscriptions; by default a quarter of SERVICE_MEMORY_TARGET',
  },
  {
    version: '0.5.0',
    name: 'SERVICE_REQUEST_MEMORY_MIB',
    change: 'changed',
    note: 'its default was 256 and is a quarter of SERVICE_MEMORY_TARGET',
  },
  {
    version: '0.5.0',
    name: 'SERVICE_RESPONSE_MEMORY_MIB',
    change: 'changed',
    note: 'its default was 256 and is a quarter of SERVICE_MEMORY_TARGET',
  },
  {
    version: '0.5.0',
    name: 'SERVICE_SESSION_RETENTION_DAYS',
    change: 'new',
    note: 'ended sessions are removed after 90 days without it',
  },
  {
    version: '0.5.0',
    name: 'SERVICE_TLS_ACME_CA_FILE',
    change: 'new',
    note: 'authorities that an ACME directory is trusted by; the public ones without it',
  },
  {
    version: '0.5.0',
    name: 'SERVICE_TLS_ACME_DIRECTORY_URL',
    change: 'new',
    note: 'directory of the ACME authority; acme-v02.api.letsencrypt.org without it',
  },
  {
    version: '0.5.0',
    name: 'SERVICE_TLS_ACME_DOMAIN',
    change: 'new',
    note: 'names that the server orders a certificate for by ACME; none without it',
  },
  {
    version: '0.5.0',
    name: 'SERVICE_TLS_ACME_EMAIL',
    change: 'new',
    note: 'address for the ACME authority; none without it',
  },
  {
    version: '0.5.0',
    name: 'SERVICE_TLS_ACME_HTTP_LISTEN',
    change: 'new',
    note: 'address that answers ACME challenges; 0.0.0.0:80 without it, where ACME is on',
  },
  {
    version: '0.5.0',
    name: 'SERVICE_TLS_CERTIFICATE_FILE',
    change: 'new',
    note: 'certificate with which listeners behind no proxy end TLS; they have none without it',
  },
  {
    version: '0.5.0',
    name: 'SERVICE_TLS_KEY_FILE',
    change: 'new',
    note: 'private key of that certificate',
  },
]
