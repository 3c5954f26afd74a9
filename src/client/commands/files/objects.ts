/** `svc files`: the objects of a bucket. */
import { existsSync, readFileSync, statSync } from 'node:fs'
import { basename } from 'node:path'
import { Fault } from '../../../errors/fault.ts'
import { sha256Hex } from '../../../system/digests.ts'
import { FileFailure } from '../../../system/files.ts'
import { CONSOLE_OBJECT_BYTES_MAX } from '../../../value/files/buckets.ts'
import { isContentType, isObjectKey } from '../../../value/files/files.ts'
import { PAGE_MAX } from '../../../wire/fields.ts'
import { deleteObject, listObjects, putObject } from '../../../wire/operations/buckets/objects.ts'
import { argument, type CommandSpec, command, option, optionalArgument } from '../../contexts.ts'
import { explanation } from '../../explanations.ts'
import { withPath } from '../../files.ts'
import { localName } from '../../local-names.ts'
import { isPageLimit, nextPage, requestCommand } from '../../request-commands.ts'
import { openRemote } from '../../roots/remotes.ts'
import { resolvePath } from '../../roots/roots.ts'
import { formatBytes, progressBar } from '../../sizes.ts'
import { usage } from '../../usage.ts'
import { OPERATION_ID, operationIdOf, operationText, REMOTE } from '../operations.ts'
import { download, exists } from './downloads.ts'
import { BUCKET, findBucket, findObject, objectNamed, openBucket } from './requests.ts'

const KEY = argument('KEY', 'The key of the object')
const IN_BUCKET = { ...REMOTE, bucket: BUCKET } as const
const CHANGE = { ...IN_BUCKET, 'operation-id': OPERATION_ID } as const
const BINARY = 'application/octet-stream'

const list: CommandSpec = requestCommand({
  name: 'files list',
  summary: 'List the objects of a bucket, in the order of the UTF-8 of their keys',
  positionals: [optionalArgument('PREFIX', 'The beginning of the keys')],
  options: {
    ...IN_BUCKET,
    limit: option('COUNT', `Objects of the page, 1 to ${PAGE_MAX}; 100 by default`),
    after: option('CURSOR', 'The `next` of the page before'),
  },
  examples: ['svc files list invoices/ --bucket uploads'],
  input({ limit = '100', after }, [prefix = '']) {
    if (!isPageLimit(limit)) throw usage(`--limit is 1 to ${PAGE_MAX}.`, list)
    return { prefix, limit, after }
  },
  open: (context, at) => openBucket(context, at, at.bucket),
  progress: 'reading the objects',
  request({ remote, bucket: { bucketId } }, query) {
    return remote.call(listObjects, { params: { bucketId }, query, subjects: { bucketId } })
  },
  rows: ({ items }) => items,
  columns: {
    KEY: 'key',
    SIZE: ({ size }) => formatBytes(Number(size)),
    TYPE: 'contentType',
    CREATED: 'createdAtMicros',
  },
  note: nextPage,
})

const put: CommandSpec = command({
  name: 'files put',
  summary: 'Store a file as an object, in place of the one that has its key',
  details: [
    'A file has at most 64 MiB. Send larger ones with a client of S3 and a key of `svc buckets',
    'keys issue`, or with an upload grant of the application.',
  ],
  positionals: [argument('FILE', 'The file to store')],
  options: {
    ...CHANGE,
    key: option('KEY', 'The key; by default the name of the file'),
    type: option('TYPE', `The media type; ${BINARY} by default`),
  },
  examples: ['svc files put logo.png --bucket uploads --key img/logo.png --type image/png'],
  async run(context, options, [file]) {
    const operationId = operationIdOf(context, put, options['operation-id'])
    const { type = BINARY } = options
    const path = resolvePath(context.environment, file!)
    const key = requireKey(options.key ?? basename(path), put)
    if (!isContentType(type)) throw usage('--type is a media type, such as image/png.', put)
    const remote = await openRemote(context, options)
    const bytes = readWhole(path)
    const { bucketId } = await findBucket(remote, options.bucket)
    await context.output.note(operationText({ operationId }))
    const request = remote.call(putObject, {
      ...objectNamed({ bucketId, key }),
      operationId,
      body: bytes,
      contentType: type,
    })
    const size = formatBytes(bytes.length)
    const stored = await context.output.progress(`sending ${size}`, request)
    if (stored.object.sha256 !== sha256Hex(bytes)) {
      throw new Fault('CLIENT_RESPONSE_INVALID', {
        detail: 'The server stored other bytes than the file has.',
      })
    }
    await context.output.result(stored, [`Stored ${key} (${size}).`])
  },
})

const get: CommandSpec = command({
  name: 'files get',
  summary: 'Download an object into a new file',
  details: [
    'The file appears once it is whole and has the digest of the object. An interrupted download',
    'leaves a .part file beside it, from which the next one goes on.',
  ],
  positionals: [KEY],
  options: {
    ...IN_BUCKET,
    out: option('FILE', 'The new file; by default named as the last segment of the key'),
  },
  examples: ['svc files get img/logo.png --bucket uploads --out logo.png'],
  async run(context, { bucket, out, ...at }, [text]) {
    const key = requireKey(text!, get)
    const name = out ?? localName(key)
    if (name === null)
      throw usage('The key ends with no plain file name: give one with --out.', get)
    const target = resolvePath(context.environment, name)
    if (existsSync(target)) throw exists(target)
    const remote = await openRemote(context, at)
    const { bucketId } = await findBucket(remote, bucket)
    const object = await findObject(remote, bucketId, key)
    const size = Number(object.size)
    let done = 0
    const onProgress = (bytes: number): void => {
      done = bytes
    }
    const path = { bucketId, key }
    const work = download(remote, path, { object, target, onProgress })
    await context.output.progress(() => progressBar(done, size), work)
    const document = { version: 1, object, file: target }
    await context.output.result(document, [`${target} (${formatBytes(size)})`])
  },
})

const remove: CommandSpec = requestCommand({
  name: 'files delete',
  summary: 'Delete an object',
  positionals: [KEY],
  options: CHANGE,
  examples: ['svc files delete img/logo.png --bucket uploads'],
  input: (options, [key], context) => ({
    key: requireKey(key!, remove),
    operationId: operationIdOf(context, remove, options['operation-id']),
  }),
  open: (context, at) => openBucket(context, at, at.bucket),
  announce: operationText,
  progress: 'deleting',
  request({ remote, bucket: { bucketId } }, { key, operationId }) {
    return remote.call(deleteObject, { ...objectNamed({ bucketId, key }), operationId })
  },
  lines: (_, { input: { key } }) => [`${key} is deleted.`],
})

export const fileCommands: readonly CommandSpec[] = [list, put, get, remove]

/** A URL has no segment that is a dot or two, however they are escaped. */
function requireKey(key: string, spec: CommandSpec): string {
  if (!isObjectKey(key)) throw usage('A key has 1 to 1,024 bytes of UTF-8.', spec)
  if (key !== '.' && key !== '..') return key
  throw usage('The keys "." and ".." have no URL: a Function deletes them with ctx.storage.', spec)
}

/** Throws CLIENT_FILE_FAILED, and PLATFORM_BODY_TOO_LARGE for more than 64 MiB. */
function readWhole(path: string): Uint8Array {
  const bytes = withPath(path, () => {
    const stats = statSync(path)
    if (!stats.isFile()) throw new FileFailure('not_regular')
    return stats.size > CONSOLE_OBJECT_BYTES_MAX ? null : readFileSync(path)
  })
  if (bytes === null || bytes.length > CONSOLE_OBJECT_BYTES_MAX) throw tooLarge(path)
  return bytes
}

function tooLarge(path: string): Fault {
  return new Fault('PLATFORM_BODY_TOO_LARGE', {
    detail: `${path} has more than ${formatBytes(CONSOLE_OBJECT_BYTES_MAX)}.`,
    cause: explanation({
      next: 'Send it with a client of S3: run `svc buckets keys issue` for a storage key.',
    }),
  })
}
