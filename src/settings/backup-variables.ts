/** The settings of backups, each a `Variable`. */

export const BACKUP_VARIABLES = [
  {
    name: 'SERVICE_BACKUP_RECIPIENTS',
    required: 'no',
    secret: false,
    file: false,
    description:
      'Up to 16 recipients of age, separated by commas, who can open backups; the server cannot',
  },
  {
    name: 'SERVICE_BACKUP_DIRECTORY',
    required: 'no',
    secret: false,
    file: false,
    description:
      'Absolute path of a directory, best of another machine, that backups go to continuously',
  },
  {
    name: 'SERVICE_BACKUP_S3_ENDPOINT',
    required: 'paired',
    secret: false,
    file: false,
    description: 'Origin of the S3-compatible store that backups go to continuously',
  },
  {
    name: 'SERVICE_BACKUP_S3_BUCKET',
    required: 'paired',
    secret: false,
    file: false,
    description: 'Bucket of that store, which is not the bucket of files',
  },
  {
    name: 'SERVICE_BACKUP_S3_REGION',
    required: 'no',
    secret: false,
    file: false,
    default: 'us-east-1',
    description: 'Region that requests to that store are signed for',
  },
  {
    name: 'SERVICE_BACKUP_S3_PREFIX',
    required: 'no',
    secret: false,
    file: false,
    description: 'Begins the names in that bucket, such as backups/',
  },
  {
    name: 'SERVICE_BACKUP_S3_ACCESS_KEY_ID',
    required: 'paired',
    secret: true,
    file: true,
    description: 'ID of the access key for that store',
  },
  {
    name: 'SERVICE_BACKUP_S3_SECRET_ACCESS_KEY',
    required: 'paired',
    secret: true,
    file: true,
    description: 'Secret of the access key for that store',
  },
  {
    name: 'SERVICE_BACKUP_BASE_INTERVAL',
    required: 'no',
    secret: false,
    file: false,
    default: '24h',
    description: 'Time after which a whole backup is made again: 10m to 31d',
  },
  {
    name: 'SERVICE_BACKUP_RETENTION_DAYS',
    required: 'no',
    secret: false,
    file: false,
    default: '30',
    description: 'Days after which backups are removed, 1 to 3650',
  },
  {
    name: 'SERVICE_BACKUP_RETENTION_BASES',
    required: 'no',
    secret: false,
    file: false,
    default: '7',
    description: 'Whole backups that are kept however old they are, 1 to 1000',
  },
  {
    name: 'SERVICE_BACKUP_PEPPER',
    required: 'no',
    secret: false,
    file: false,
    description:
      'Exactly include: backups also have the peppers, without which restored sessions are void',
  },
  {
    name: 'SERVICE_BACKUP_REHEARSAL_IDENTITY_FILE',
    required: 'no',
    secret: false,
    file: false,
    description:
      'Absolute path of an identity of age with which the server restores its newest backup each ' +
      'week to prove it: the server can then open its backups',
  },
] as const
