/** `svc buckets`: the buckets of the linked Environment. */
import { createBucket } from '../../../wire/operations/buckets/buckets.ts'
import { argument, type CommandSpec, option } from '../../contexts.ts'
import { requestCommand } from '../../request-commands.ts'
import type { Remote } from '../../roots/remotes.ts'
import { formatBytes, parseBytes } from '../../sizes.ts'
import { usage } from '../../usage.ts'
import {
  type ChangeIntent,
  changeIntent,
  changeOptions,
  OPERATION_ID,
  operationText,
  REMOTE,
  staleRevision,
} from '../operations.ts'
import { type BucketItem, changeBucket, listBuckets, openBucket } from './requests.ts'

const NAME = argument('NAME', 'The name of the bucket')
const CHANGE = changeOptions('the bucket')
const SIZE = 'such as 500MiB or 2GiB'
const BOUNDS = {
  quota: option('SIZE', `Bytes of all its files, ${SIZE}; "none" for no bound`),
  'object-max': option('SIZE', `Bytes of one file, ${SIZE}; "none" for no bound`),
} as const

const list = requestCommand({
  name: 'buckets list',
  summary: 'List the buckets and what they hold',
  options: REMOTE,
  progress: 'reading the buckets',
  request: listBuckets,
  document: (buckets) => ({ version: 1, items: [...buckets] }),
  rows: (buckets) => buckets,
  columns: {
    NAME: ({ configuration }) => configuration.name,
    STATE: 'lifecycle',
    FILES: ({ usage: use }) => use?.files ?? '-',
    USED: ({ usage: use }) => (use === null ? '-' : formatBytes(Number(use.bytes))),
    QUOTA: ({ configuration }) => boundOf(configuration.quotaBytes),
    'OBJECT MAX': ({ configuration }) => boundOf(configuration.maximumObjectBytes),
    REVISION: 'revision',
    CREATED: 'createdAtMicros',
  },
})

const create: CommandSpec = requestCommand({
  name: 'buckets create',
  summary: 'Create a bucket',
  details: [
    'A name has 3 to 63 lower-case letters, digits and hyphens. It is never used again, also after',
    'the bucket was archived.',
  ],
  positionals: [NAME],
  options: { ...REMOTE, ...BOUNDS, 'operation-id': OPERATION_ID },
  examples: ['svc buckets create uploads --quota 10GiB --object-max 100MiB'],
  input(options, [name], context) {
    const { operationId, changedAtMicros } = changeIntent(context, create, options)
    const bounds = boundsIn(options, create)
    const configuration = { quotaBytes: null, maximumObjectBytes: null, ...bounds, name: name! }
    return { operationId, body: { configuration, changedAtMicros } }
  },
  announce: operationText,
  progress: 'creating the bucket',
  request: (remote, creation) => remote.call(createBucket, creation),
  lines: ({ operation, bucketId }, { input }) => [
    `${operation.replayed ? 'Created before' : 'Created'}: ` +
      `${input.body.configuration.name} (${bucketId}).`,
  ],
})

const update: CommandSpec = requestCommand({
  name: 'buckets update',
  summary: 'Replace the bounds of a bucket',
  details: ['A bound that is not given stays. Files stay even if they exceed the new bounds.'],
  positionals: [NAME],
  options: { ...CHANGE, ...BOUNDS },
  examples: ['svc buckets update uploads --quota none'],
  input(options, [name], context) {
    const intent = changeIntent(context, update, options)
    const bounds = boundsIn(options, update)
    if (Object.keys(bounds).length === 0) throw usage('Give --quota or --object-max.', update)
    return { ...intent, name, bounds }
  },
  open: (context, at, { name }) => openBucket(context, at, name),
  announce: operationText,
  progress: 'changing the bucket',
  request: ({ remote, bucket }, { bounds, ...intent }) =>
    change(remote, bucket, intent, { ...bucket.configuration, ...bounds }),
  explains: staleRevision('svc buckets list'),
  lines: ({ configuration: { quotaBytes, maximumObjectBytes } }, { server }) => [
    `${server.bucket.configuration.name}: quota ${boundOf(quotaBytes)}, ` +
      `object max ${boundOf(maximumObjectBytes)}.`,
  ],
})

const archive: CommandSpec = requestCommand({
  name: 'buckets archive',
  summary: 'Archive a bucket permanently',
  details: [
    'It keeps its files, which can be read and deleted. It admits no new file, and its storage',
    'keys stop working at once. There is no way back.',
  ],
  positionals: [NAME],
  options: CHANGE,
  examples: ['svc buckets archive uploads'],
  input: (options, [name], context) => ({ ...changeIntent(context, archive, options), name }),
  open: (context, at, { name }) => openBucket(context, at, name),
  announce: operationText,
  progress: 'archiving the bucket',
  request: ({ remote, bucket }, intent) => change(remote, bucket, intent, null),
  explains: staleRevision('svc buckets list'),
  lines: (_, { server }) => [`${server.bucket.configuration.name} is archived.`],
})

export const bucketCommands: readonly CommandSpec[] = [list, create, update, archive]

function change(
  remote: Remote,
  { bucketId, revision }: BucketItem,
  { operationId, changedAtMicros, expected }: ChangeIntent,
  configuration: Parameters<typeof changeBucket>[3],
) {
  const asked = { operationId, changedAtMicros, expectedRevision: expected ?? revision }
  return changeBucket(remote, asked, bucketId, configuration)
}

/** Returns the bounds that are given, as the configuration has them. */
function boundsIn(
  options: { readonly quota: string | undefined; readonly 'object-max': string | undefined },
  spec: CommandSpec,
) {
  const { quota, 'object-max': objectMax } = options
  return {
    ...(quota !== undefined && { quotaBytes: bytesIn('--quota', quota, spec) }),
    ...(objectMax !== undefined && {
      maximumObjectBytes: bytesIn('--object-max', objectMax, spec),
    }),
  }
}

function bytesIn(name: string, text: string, spec: CommandSpec): string | null {
  if (text === 'none') return null
  const bytes = parseBytes(text)
  if (bytes === null) throw usage(`${name} needs a size ${SIZE}, or "none".`, spec)
  return String(bytes)
}

function boundOf(bytes: string | null): string {
  return bytes === null ? 'none' : formatBytes(Number(bytes))
}
