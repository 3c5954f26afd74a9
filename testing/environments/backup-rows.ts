/** Broken settings of backups. */
import { APPLICATION, ROOT } from './environments.ts'

const INVALID = 'SERVER_CONFIGURATION_INVALID'
const RECIPIENTS = 'SERVICE_BACKUP_RECIPIENTS'
const DIRECTORY = 'SERVICE_BACKUP_DIRECTORY'
const ENDPOINT = 'SERVICE_BACKUP_S3_ENDPOINT'
const BUCKET = 'SERVICE_BACKUP_S3_BUCKET'
const REGION = 'SERVICE_BACKUP_S3_REGION'
const PREFIX = 'SERVICE_BACKUP_S3_PREFIX'
const KEY_ID = 'SERVICE_BACKUP_S3_ACCESS_KEY_ID'
const SECRET = 'SERVICE_BACKUP_S3_SECRET_ACCESS_KEY'
const INTERVAL = 'SERVICE_BACKUP_BASE_INTERVAL'
const DAYS = 'SERVICE_BACKUP_RETENTION_DAYS'
const BASES = 'SERVICE_BACKUP_RETENTION_BASES'
const PEPPERS = 'SERVICE_BACKUP_PEPPER'
const REHEARSAL = 'SERVICE_BACKUP_REHEARSAL_IDENTITY_FILE'

export const RECIPIENT = 'age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj'
const MISTYPED = 'age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwp'

type Given = Readonly<Record<string, string>>
const rooted = (given: Given) => ({ ...ROOT, ...given })
/** A valid directory of backups, and what is wrong beside it. */
const kept = (given: Given) =>
  rooted({ [RECIPIENTS]: RECIPIENT, [DIRECTORY]: '/backups/canary', ...given })
export const BACKUP_S3 = {
  [ENDPOINT]: 'https://s3.canary.test',
  [BUCKET]: 'canary-backups',
  [KEY_ID]: 'canary-id',
  [SECRET]: 'canary-secret',
}
const inBucket = (given: Given) => rooted({ [RECIPIENTS]: RECIPIENT, ...BACKUP_S3, ...given })
const FILES = {
  SERVICE_STORAGE_S3_ENDPOINT: BACKUP_S3[ENDPOINT]!,
  SERVICE_STORAGE_S3_BUCKET: BACKUP_S3[BUCKET]!,
  SERVICE_STORAGE_S3_ACCESS_KEY_ID: 'canary-id',
  SERVICE_STORAGE_S3_SECRET_ACCESS_KEY: 'canary-secret',
}

export const BACKUPS = [
  ['backups need the Product root', INVALID, RECIPIENTS, { [RECIPIENTS]: RECIPIENT }],
  [
    'the file of a key of backups needs the Product root',
    INVALID,
    `${SECRET}_FILE`,
    { [`${SECRET}_FILE`]: '/canary' },
  ],
  ['a recipient has no typing error', INVALID, RECIPIENTS, rooted({ [RECIPIENTS]: MISTYPED })],
  [
    'an identity is no recipient',
    INVALID,
    RECIPIENTS,
    rooted({ [RECIPIENTS]: `AGE-SECRET-KEY-1CANARY${'Q'.repeat(52)}` }),
  ],
  [
    'there are no blanks between recipients',
    INVALID,
    RECIPIENTS,
    rooted({ [RECIPIENTS]: `${RECIPIENT}, ${RECIPIENT}` }),
  ],
  [
    'each recipient is given once',
    INVALID,
    RECIPIENTS,
    rooted({ [RECIPIENTS]: `${RECIPIENT},${RECIPIENT}` }),
  ],
  [
    'at most 16 recipients',
    INVALID,
    RECIPIENTS,
    rooted({ [RECIPIENTS]: Array(17).fill(RECIPIENT).join() }),
  ],
  [
    'a directory of backups needs recipients',
    INVALID,
    DIRECTORY,
    rooted({ [DIRECTORY]: '/backups/canary' }),
  ],
  ['a bucket of backups needs recipients', INVALID, ENDPOINT, rooted(BACKUP_S3)],
  [
    'rehearsals need recipients',
    INVALID,
    REHEARSAL,
    rooted({ [REHEARSAL]: '/canary/rehearsal.key' }),
  ],
  [
    'rehearsals need a target',
    INVALID,
    REHEARSAL,
    rooted({ [RECIPIENTS]: RECIPIENT, [REHEARSAL]: '/canary/rehearsal.key' }),
  ],
  [
    'the path of an identity is absolute',
    INVALID,
    REHEARSAL,
    kept({ [REHEARSAL]: 'canary/rehearsal.key' }),
  ],
  [
    'an identity is not readable by every user',
    INVALID,
    REHEARSAL,
    kept({ [REHEARSAL]: '/etc/passwd' }),
  ],
  ['the pepper in backups needs recipients', INVALID, PEPPERS, rooted({ [PEPPERS]: 'include' })],
  ['the directory of backups is absolute', INVALID, DIRECTORY, kept({ [DIRECTORY]: 'canary' })],
  [
    'the directory of backups is outside of the root',
    INVALID,
    DIRECTORY,
    kept({ [DIRECTORY]: '/srv/canary/backups' }),
  ],
  ['backups have one target', INVALID, DIRECTORY, kept(BACKUP_S3)],
  [
    'a bucket of backups needs all of its settings',
    INVALID,
    BUCKET,
    kept({ [ENDPOINT]: 'https://c.test' }),
  ],
  [
    'the endpoint of backups is an origin',
    INVALID,
    ENDPOINT,
    inBucket({ [ENDPOINT]: 's3.canary.test' }),
  ],
  ['the bucket of backups has a name', INVALID, BUCKET, inBucket({ [BUCKET]: 'Canary' })],
  ['the region of backups is one', INVALID, REGION, inBucket({ [REGION]: 'canary region' })],
  [
    'backups are not in the bucket of the files',
    INVALID,
    BUCKET,
    { ...APPLICATION, ...inBucket({}), ...FILES },
  ],
  ['the prefix of backups ends with a slash', INVALID, PREFIX, inBucket({ [PREFIX]: 'canary' })],
  [
    'the prefix of backups does not begin with a slash',
    INVALID,
    PREFIX,
    inBucket({ [PREFIX]: '/' }),
  ],
  ['the prefix of backups needs a bucket', INVALID, PREFIX, kept({ [PREFIX]: 'canary/' })],
  [
    'one source of the ID of the key of backups',
    'SERVER_SECRET_CONFIGURATION_CONFLICT',
    `${KEY_ID}, ${KEY_ID}_FILE`,
    inBucket({ [`${KEY_ID}_FILE`]: '/canary' }),
  ],
  [
    'one source of the secret of backups',
    'SERVER_SECRET_CONFIGURATION_CONFLICT',
    `${SECRET}, ${SECRET}_FILE`,
    inBucket({ [`${SECRET}_FILE`]: '/canary' }),
  ],
  ['the interval of bases has a unit', INVALID, INTERVAL, kept({ [INTERVAL]: '86400' })],
  ['the interval of bases is at least 10 minutes', INVALID, INTERVAL, kept({ [INTERVAL]: '9m' })],
  ['the interval of bases is at most 31 days', INVALID, INTERVAL, kept({ [INTERVAL]: '745h' })],
  ['backups are kept for a day at least', INVALID, DAYS, kept({ [DAYS]: '0' })],
  ['at least one base is kept', INVALID, BASES, kept({ [BASES]: '0' })],
  ['the pepper is included in one word', INVALID, PEPPERS, kept({ [PEPPERS]: 'true' })],
] as const
