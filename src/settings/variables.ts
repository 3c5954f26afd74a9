/**
 * Every setting of the server, once: the parser reads it, `svc-server --help` shows it, and
 * `svc docs settings` is generated from it. Each row has the default; the
 * rules stand in settings.ts and the files beside it.
 */

import { BACKUP_VARIABLES } from './backup-variables.ts'
import { TLS_VARIABLES } from './tls-variables.ts'

export interface Variable {
  readonly name: string
  readonly required: 'yes' | 'one source' | 'paired' | 'no' | 'recovery only' | 'client only'
  readonly secret: boolean
  /** True if `<name>_FILE` may name a file that holds the value. */
  readonly file: boolean
  /** The deprecated name of the same role; it has a `_FILE` form where this one has. */
  readonly legacy?: string
  readonly default?: string
  readonly description: string
}

export const VARIABLES = [
  {
    name: 'SERVICE_IDENTITY_DATABASE_URL',
    required: 'one source',
    secret: true,
    file: true,
    legacy: 'SERVICE_DATABASE_URL',
    description: 'PostgreSQL URL of the identity database: postgres://user:password@host/database',
  },
  {
    name: 'SERVICE_PLATFORM_IDENTITY_PEPPER',
    required: 'one source',
    secret: true,
    file: true,
    description: '32 random bytes as URL-safe base64 without padding; keys every stored digest',
  },
  {
    name: 'SERVICE_STATE_DIRECTORY',
    required: 'yes',
    secret: false,
    file: false,
    description: 'Absolute path, other than /, that only the server writes; holds the first code',
  },
  {
    name: 'SERVICE_MANAGEMENT_LISTEN',
    required: 'no',
    secret: false,
    file: false,
    default: '127.0.0.1:3220',
    description: 'Address of the Management listener: 127.0.0.1:3220 or [::1]:3220',
  },
  {
    name: 'SERVICE_MANAGEMENT_TLS_TERMINATED',
    required: 'no',
    secret: false,
    file: false,
    description:
      'Exactly true: behind a proxy that ends TLS; trusts X-Forwarded-For, permits any address',
  },
  ...TLS_VARIABLES,
  {
    name: 'SERVICE_PUBLIC_MANAGEMENT_URL',
    required: 'no',
    secret: false,
    file: false,
    description: 'Public HTTPS origin of the Management listener, as login discovery returns it',
  },
  {
    name: 'SERVICE_PLATFORM_OIDC_CONFIG',
    required: 'no',
    secret: false,
    file: false,
    description: 'Absolute path of the OIDC provider configuration, at most 64 KiB of strict JSON',
  },
  {
    name: 'SERVICE_PLATFORM_WORKLOAD_OIDC_CONFIG',
    required: 'no',
    secret: false,
    file: false,
    description:
      'Absolute path of up to 8 OIDC providers of CI jobs, at most 64 KiB of strict JSON',
  },
  {
    name: 'SERVICE_PLATFORM_MANAGED_ENROLLMENT_TOKEN',
    required: 'paired',
    secret: true,
    file: true,
    description: 'Internal gateway secret of at least 32 bytes; enables managed grants',
  },
  {
    name: 'SERVICE_PLATFORM_MANAGED_SOURCE_AUTHORITY',
    required: 'paired',
    secret: false,
    file: false,
    description: 'HTTPS origin that owns every grant accepted with the managed token',
  },
  {
    name: 'SERVICE_PRODUCT_ROOT',
    required: 'no',
    secret: false,
    file: false,
    description: 'Absolute path of the initialized Product Environment root that is served',
  },
  {
    name: 'SERVICE_APPLICATION_LISTEN',
    required: 'paired',
    secret: false,
    file: false,
    description: 'Address of the application listener; needs the Product root',
  },
  {
    name: 'SERVICE_APPLICATION_TLS_TERMINATED',
    required: 'paired',
    secret: false,
    file: false,
    description:
      'Exactly true: behind a proxy that ends TLS; trusts X-Forwarded-For; required without a ' +
      'certificate of the server',
  },
  {
    name: 'SERVICE_PLATFORM_DATABASE_URL',
    required: 'no',
    secret: true,
    file: true,
    legacy: 'SERVICE_PRODUCT_DATABASE_URL',
    description: 'PostgreSQL URL for documents and schedules; needs the Product root',
  },
  {
    name: 'SERVICE_PRODUCT_ALLOWED_ORIGINS',
    required: 'no',
    secret: false,
    file: false,
    description:
      'Up to 64 exact browser or web view origins without wildcards, separated by commas; needs ' +
      'the Product root',
  },
  {
    name: 'SERVICE_S3_HOST',
    required: 'no',
    secret: false,
    file: false,
    description:
      'Host name, without a port, under which the application listener answers S3 clients at /; ' +
      'any other host has them below /v1/s3',
  },
  {
    name: 'SERVICE_PRODUCT_AUTH_CONFIG',
    required: 'no',
    secret: false,
    file: false,
    description: 'Path of the JWT descriptor inside the Product root; needs the Product root',
  },
  {
    name: 'SERVICE_RUNNER_SANDBOX',
    required: 'no',
    secret: false,
    file: false,
    description: 'Exactly required: no start where Functions cannot be contained',
  },
  {
    name: 'SERVICE_ACTION_ALLOWED_NETWORKS',
    required: 'no',
    secret: false,
    file: false,
    description: 'Up to 64 networks that Actions may call though not public: 10.1.0.0/16,fd00::/8',
  },
  {
    name: 'SERVICE_STORAGE_FREE_FLOOR_BYTES',
    required: 'no',
    secret: false,
    file: false,
    default: '536870912',
    description: 'Bytes that uploads leave free on the disk of the Product root; less are 503',
  },
  {
    name: 'SERVICE_STORAGE_S3_ENDPOINT',
    required: 'paired',
    secret: false,
    file: false,
    description: 'Origin of the S3-compatible store for the bytes of files and the log archive',
  },
  {
    name: 'SERVICE_STORAGE_S3_BUCKET',
    required: 'paired',
    secret: false,
    file: false,
    description: 'Bucket of that store; Environments may share it',
  },
  {
    name: 'SERVICE_STORAGE_S3_REGION',
    required: 'no',
    secret: false,
    file: false,
    default: 'us-east-1',
    description: 'Region that requests to that store are signed for',
  },
  {
    name: 'SERVICE_STORAGE_S3_ACCESS_KEY_ID',
    required: 'paired',
    secret: true,
    file: true,
    description: 'ID of the access key for that store',
  },
  {
    name: 'SERVICE_STORAGE_S3_SECRET_ACCESS_KEY',
    required: 'paired',
    secret: true,
    file: true,
    description: 'Secret of the access key for that store',
  },
  ...BACKUP_VARIABLES,
  {
    name: 'SERVICE_APPLICATION_PROCESSES',
    required: 'no',
    secret: false,
    file: false,
    default: '1',
    description:
      'Processes that answer the application address and execute Queries, 1 to 64; 1 is the main ' +
      'process alone',
  },
  {
    name: 'SERVICE_MEMORY_TARGET',
    required: 'no',
    secret: false,
    file: false,
    description:
      'MiB that the server aims at with all its processes, 256 to 1048576 and at least 128 for ' +
      'each process with an engine; by default half of the memory of the machine or control ' +
      'group, at most 1024',
  },
  {
    name: 'SERVICE_REQUEST_MEMORY_MIB',
    required: 'no',
    secret: false,
    file: false,
    description:
      'MiB that unfinished request bodies and waiting Realtime messages may hold, 128 to 65536, ' +
      'by default a quarter of the target; more are 503 at once',
  },
  {
    name: 'SERVICE_RESPONSE_MEMORY_MIB',
    required: 'no',
    secret: false,
    file: false,
    description:
      'MiB that unsent responses may hold, 128 to 65536, by default a quarter of the target; ' +
      'more are 503 at once',
  },
  {
    name: 'SERVICE_LOG_SEGMENT_MIB',
    required: 'no',
    secret: false,
    file: false,
    default: '64',
    description: 'MiB of log records after which an archive segment is closed, 1 to 512',
  },
  {
    name: 'SERVICE_LOG_SEGMENT_SECONDS',
    required: 'no',
    secret: false,
    file: false,
    default: '3600',
    description: 'Seconds after which an archive segment is closed, 1 to 86400',
  },
  {
    name: 'SERVICE_LOG_RETENTION_DAYS',
    required: 'no',
    secret: false,
    file: false,
    default: '30',
    description: 'Days after which archived log records leave logs.db, 1 to 3650',
  },
  {
    name: 'SERVICE_LOG_ARCHIVE_DAYS',
    required: 'no',
    secret: false,
    file: false,
    default: '365',
    description: 'Days after which archive segments of the log are removed, 1 to 3650',
  },
  {
    name: 'SERVICE_AUDIT_RETENTION_DAYS',
    required: 'no',
    secret: false,
    file: false,
    default: '730',
    description: 'Days after which records of the security audit are removed, 1 to 3650',
  },
  {
    name: 'SERVICE_SESSION_RETENTION_DAYS',
    required: 'no',
    secret: false,
    file: false,
    default: '90',
    description: 'Days after which ended sessions of operators are removed, 1 to 3650',
  },
  {
    name: 'OTEL_EXPORTER_OTLP_ENDPOINT',
    required: 'no',
    secret: false,
    file: false,
    description: 'URL that traces are sent below, to /v1/traces, by OTLP; none are made without it',
  },
  {
    name: 'OTEL_EXPORTER_OTLP_HEADERS',
    required: 'no',
    secret: true,
    file: true,
    description: 'Headers of those requests: name=value pairs, separated by commas',
  },
  {
    name: 'OTEL_EXPORTER_OTLP_PROTOCOL',
    required: 'no',
    secret: false,
    file: false,
    default: 'http/protobuf',
    description: 'Form of traces: http/protobuf or http/json',
  },
  {
    name: 'OTEL_SERVICE_NAME',
    required: 'no',
    secret: false,
    file: false,
    default: 'svc-server',
    description: 'Name of this server in traces',
  },
  {
    name: 'OTEL_TRACES_SAMPLER_ARG',
    required: 'no',
    secret: false,
    file: false,
    default: '1',
    description: 'Share of traces that are exported, 0 to 1, where no caller has decided',
  },
  {
    name: 'SERVICE_REALTIME_CONNECTIONS_MAX',
    required: 'no',
    secret: false,
    file: false,
    default: '20000',
    description: 'Open Realtime connections in all, 1 to 1000000; further ones are 503',
  },
  {
    name: 'SERVICE_REALTIME_CONNECTIONS_PER_CREDENTIAL_MAX',
    required: 'no',
    secret: false,
    file: false,
    default: '10000',
    description: 'Open Realtime connections of one Application credential, 1 to 1000000',
  },
  {
    name: 'SERVICE_REALTIME_CONNECTIONS_PER_PEER_MAX',
    required: 'no',
    secret: false,
    file: false,
    default: '1000',
    description: 'Open Realtime connections of one peer address, 1 to 1000000; more are 503',
  },
  {
    name: 'SERVICE_REALTIME_MEMORY_MIB',
    required: 'no',
    secret: false,
    file: false,
    description:
      'MiB that subscriptions may hold, 128 to 65536, by default a quarter of the target; one ' +
      'address a quarter, one key half of it',
  },
  {
    name: 'SERVICE_BOOTSTRAP_RECOVERY_CONFIRM',
    required: 'recovery only',
    secret: false,
    file: false,
    description: 'Must equal replace-lost-initial-owner-code for recover-bootstrap',
  },
  {
    name: 'SERVICE_OWNER_RECOVERY_CONFIRM',
    required: 'recovery only',
    secret: false,
    file: false,
    description: 'Must equal issue-owner-invitation for recover-owner',
  },
  {
    name: 'SERVICE_PEPPER_CHANGE_CONFIRM',
    required: 'recovery only',
    secret: false,
    file: false,
    description:
      'Must equal void-every-session-and-invitation for migrate to take another identity pepper',
  },
  {
    name: 'SERVICE_SUBJECT_PEPPER_CHANGE_CONFIRM',
    required: 'recovery only',
    secret: false,
    file: false,
    description: 'Must equal void-every-identity-link for migrate to take another subjectPepper',
  },
  {
    name: 'SERVICE_CONFIG_HOME',
    required: 'client only',
    secret: false,
    file: false,
    description: 'Absolute directory of the client credentials file',
  },
] as const satisfies readonly Variable[]

type Row = (typeof VARIABLES)[number]
export type VariableName = Row['name']
export type SecretName = Extract<Row, { secret: true }>['name']
export type PlainName = Exclude<VariableName, SecretName>

export function variable(name: VariableName): Variable {
  return VARIABLES.find((row) => row.name === name)!
}

export function isRequired(row: Variable): boolean {
  return row.required === 'yes' || row.required === 'one source'
}

/** Every name that may give the value of one variable, the preferred one first. */
export function sourceNames(row: Variable): readonly string[] {
  const names = row.legacy === undefined ? [row.name] : [row.name, row.legacy]
  return row.file ? names.flatMap((name) => [name, `${name}_FILE`]) : names
}
