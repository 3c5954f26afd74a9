/** `svc buckets`: the buckets of the linked Environment. */
import { formatTimestamp } from '../../../value/plain.ts'
import { createBucket } from '../../../wire/operations/buckets/buckets.ts'
import { type CommandSpec, command, option } from '../../contexts.ts'
import { openRemote } from '../../roots/remotes.ts'
import { usage } from '../../usage.ts'
import { changeIntent, changeOptions, REMOTE, rethrowChange } from '../operations.ts'
import { changeBucket, findBucket, listBuckets } from './requests.ts'
import { formatBytes, parseBytes } from './sizes.ts'

const NAME = { name: 'NAME', description: 'The name of the bucket', required: true } as const
const CHANGE = changeOptions('the bucket')
const SIZE = 'such as 500MiB or 2GiB'
const BOUNDS = {
  quota: option('SIZE', `Bytes of all its files, ${SIZE}; "none" for no bound`),
  'object-max': option('SIZE', `Bytes of one file, ${SIZE}; "none" for no bound`),
} as const

const list: CommandSpec = command({
  name: 'buckets list',
  summary: 'List the buckets and what they hold',
  options: REMOTE,
  async run(context, at) {
    const request = listBuckets(await openRemote(context, at))
    const buckets = await context.output.progress('reading the buckets', request)
    const rows = buckets.map(({ configuration, lifecycle, revision, usage: use, ...bucket }) => [
      configuration.name,
      lifecycle,
      use?.files ?? '-',
      use === null ? '-' : formatBytes(Number(use.bytes)),
      boundOf(configuration.quotaBytes),
      boundOf(configuration.maximumObjectBytes),
      revision,
      formatTimestamp(BigInt(bucket.createdAtMicros)),
    ])
    const head = ['NAME', 'STATE', 'FILES', 'USED', 'QUOTA', 'OBJECT MAX', 'REVISION', 'CREATED']
    const document = { version: 1, items: [...buckets] }
    await context.output.result(document, context.output.table(head, rows))
  },
})

const create: CommandSpec = command({
  name: 'buckets create',
  summary: 'Create a bucket',
  details: [
    'A name has 3 to 63 lower-case letters, digits and hyphens. It is never used again, also after',
    'the bucket was archived.',
  ],
  positionals: [NAME],
  options: {
    ...REMOTE,
    ...BOUNDS,
    'operation-id': option('opn_ID', 'Operation ID; a new one by default'),
  },
  examples: ['svc buckets create uploads --quota 10GiB --object-max 100MiB'],
  async run(context, options, [name]) {
    const asked = { ...options, expected: undefined }
    const { operationId, changedAtMicros } = changeIntent(context, create, asked)
    const bounds = boundsIn(options, create)
    const configuration = { quotaBytes: null, maximumObjectBytes: null, ...bounds, name: name! }
    const remote = await openRemote(context, options)
    await context.output.note(`Operation ${operationId}`)
    const body = { configuration, changedAtMicros }
    const request = remote.call(createBucket, { operationId, body })
    const created = await context.output.progress('creating the bucket', request)
    const said = created.operation.replayed ? 'Created before' : 'Created'
    await context.output.result(created, [`${said}: ${name} (${created.bucketId}).`])
  },
})

const update: CommandSpec = command({
  name: 'buckets update',
  summary: 'Replace the bounds of a bucket',
  details: ['A bound that is not given stays. Files stay even if they exceed the new bounds.'],
  positionals: [NAME],
  options: { ...CHANGE, ...BOUNDS },
  examples: ['svc buckets update uploads --quota none'],
  async run(context, options, [name]) {
    const intent = changeIntent(context, update, options)
    const bounds = boundsIn(options, update)
    if (Object.keys(bounds).length === 0) throw usage('Give --quota or --object-max.', update)
    const remote = await openRemote(context, options)
    const { bucketId, configuration, revision } = await findBucket(remote, name)
    await context.output.note(`Operation ${intent.operationId}`)
    const change = { ...intentOf(intent), expectedRevision: intent.expected ?? revision }
    const request = changeBucket(remote, change, bucketId, { ...configuration, ...bounds })
    const changed = await context.output
      .progress('changing the bucket', request)
      .catch((error: unknown) => rethrowChange(error, 'svc buckets list'))
    const { quotaBytes, maximumObjectBytes } = changed.configuration
    const shown = `quota ${boundOf(quotaBytes)}, object max ${boundOf(maximumObjectBytes)}`
    await context.output.result(changed, [`${configuration.name}: ${shown}.`])
  },
})

const archive: CommandSpec = command({
  name: 'buckets archive',
  summary: 'Archive a bucket permanently',
  details: [
    'It keeps its files, which can be read and deleted. It admits no new file, and its storage',
    'keys stop working at once. There is no way back.',
  ],
  positionals: [NAME],
  options: CHANGE,
  examples: ['svc buckets archive uploads'],
  async run(context, options, [name]) {
    const intent = changeIntent(context, archive, options)
    const remote = await openRemote(context, options)
    const { bucketId, configuration, revision } = await findBucket(remote, name)
    await context.output.note(`Operation ${intent.operationId}`)
    const change = { ...intentOf(intent), expectedRevision: intent.expected ?? revision }
    const request = changeBucket(remote, change, bucketId, null)
    const changed = await context.output
      .progress('archiving the bucket', request)
      .catch((error: unknown) => rethrowChange(error, 'svc buckets list'))
    await context.output.result(changed, [`${configuration.name} is archived.`])
  },
})

export const bucketCommands: readonly CommandSpec[] = [list, create, update, archive]

function intentOf({ operationId, changedAtMicros }: ReturnType<typeof changeIntent>) {
  return { operationId, changedAtMicros }
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
