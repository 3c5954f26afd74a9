/** Mounts of the routes of `http.ts` (contract/wire.md, HTTP mounts). */
import {
  isPublicUrl,
  MOUNT_NAME,
  MOUNT_RATE_MAX,
  MOUNT_TOKEN,
  MOUNTS_MAX,
} from '../../value/http/mounts.ts'
import {
  documented,
  idField,
  integer,
  listUpTo,
  Micros,
  Revision,
  TargetField,
  text,
  textUpTo,
  U64,
} from '../fields.ts'
import { OperationField } from '../idempotency-records.ts'
import { type Infer, schema } from '../schema.ts'

export const MountName = text(MOUNT_NAME, 'the name of a mount')

const PublicUrl = documented(
  schema([
    ['string', ':', isPublicUrl],
    '@',
    'an http or https URL without a query and without a slash at its end',
  ]),
  { maxLength: 512 },
)
const RateLimit = schema([integer(1, MOUNT_RATE_MAX), '|', 'null'])

/** Parts that are left out stay as they are. */
const MountConfiguration = schema({
  target: TargetField,
  /** Requests a second; null for the default. */
  'rateLimit?': RateLimit,
  /** True for paths with a secret part; one that exists is kept. */
  'pathToken?': 'boolean',
  /** The URL of the application origin, as other services call it. */
  'publicUrl?': [PublicUrl, '|', 'null'],
})

export const MountPut = schema({
  configuration: MountConfiguration,
  /** Left out: any; 0: the mount must not exist. */
  'expectedRevision?': Revision,
  changedAtMicros: Micros,
})
export const MountDelete = schema({ 'expectedRevision?': Revision, changedAtMicros: Micros })

const MOUNT = {
  name: MountName,
  /** The path of the application origin below which the routes are. */
  path: textUpTo(128),
  revision: U64,
  configuration: schema({
    target: TargetField,
    rateLimit: RateLimit,
    pathToken: 'boolean',
    publicUrl: [textUpTo(512), '|', 'null'],
  }),
  createdAtMicros: Micros,
  updatedAtMicros: Micros,
} as const

const MountField = schema(MOUNT)
export type MountRead = Infer<typeof MountField>

const ListedMount = schema({
  ...MOUNT,
  /**
   * A Release that the target serves, of several the one with the largest share; null while it
   * serves none. Servers before this field leave it out.
   */
  'releaseId?': [idField('rel'), '|', 'null'],
})
export type ListedMount = Infer<typeof ListedMount>

export const MountList = schema({
  version: '1',
  /** Sorted by name. */
  mounts: listUpTo(ListedMount, MOUNTS_MAX),
})
export type MountList = Infer<typeof MountList>

export const MountChanged = schema({
  version: '1',
  ...MOUNT,
  /** The new secret part of the path, in the first response alone; null if none was made. */
  token: [text(MOUNT_TOKEN, 'a secret of a mount'), '|', 'null'],
  operation: OperationField,
})
export type MountChanged = Infer<typeof MountChanged>

export const MountDeleted = schema({ version: '1', ...MOUNT, operation: OperationField })
export type MountDeleted = Infer<typeof MountDeleted>
