/** `svc buckets keys`: manages storage keys. A secret is shown once. */
import { isFault } from '../../../errors/fault.ts'
import { isId, type StorageKeyId } from '../../../value/ids.ts'
import { formatTimestamp } from '../../../value/plain.ts'
import type { StorageKeyIssued } from '../../../wire/files/buckets.ts'
import { revokeStorageKey } from '../../../wire/operations/buckets/storage-keys.ts'
import { type CommandSpec, type Context, command, option, requiredOption } from '../../contexts.ts'
import { explained } from '../../explanations.ts'
import { openRemote, type RemoteOptions } from '../../roots/remotes.ts'
import { resolvePath } from '../../roots/roots.ts'
import { withSecretFile } from '../../secret-files.ts'
import { usage } from '../../usage.ts'
import { changeIntent, REMOTE } from '../operations.ts'
import { findBucket, issueStorageKey, listStorageKeys } from './requests.ts'

const BUCKET = { name: 'BUCKET', description: 'The name of the bucket', required: true } as const
const KEY = requiredOption('stk_ID', 'The storage key')
const OPERATION = {
  ...REMOTE,
  'operation-id': option('opn_ID', 'Operation ID; a new one by default'),
} as const
const SECRET_OUT = option('FILE', 'Write the secret to this new file instead of printing it')
const ACCESSES: readonly string[] = ['read', 'write']

const list: CommandSpec = command({
  name: 'buckets keys list',
  summary: 'List the storage keys of a bucket, without secrets',
  positionals: [BUCKET],
  options: REMOTE,
  async run(context, at, [bucket]) {
    const remote = await openRemote(context, at)
    const { bucketId } = await findBucket(remote, bucket)
    const request = listStorageKeys(remote, bucketId)
    const page = await context.output.progress('reading the keys', request)
    const rows = page.items.map((key) => [
      key.storageKeyId,
      key.name,
      key.access,
      key.state,
      formatTimestamp(BigInt(key.createdAtMicros)),
    ])
    const head = ['KEY', 'NAME', 'ACCESS', 'STATE', 'CREATED']
    await context.output.result(page, context.output.table(head, rows))
  },
})

const issue: CommandSpec = command({
  name: 'buckets keys issue',
  summary: 'Issue a storage key, with which S3 clients use the bucket',
  details: [
    'The secret is printed once. With --secret-out it is written to a new file (0600) instead. If',
    'the response is lost, find the key with `svc buckets keys list`, revoke it and issue another.',
  ],
  positionals: [BUCKET],
  options: {
    ...OPERATION,
    name: requiredOption('NAME', 'Display name'),
    access: requiredOption('ACCESS', 'read or write; write includes reading'),
    'secret-out': SECRET_OUT,
  },
  examples: ['svc buckets keys issue uploads --name backup --access read'],
  async run(context, options, [bucket]) {
    const { name, access } = options
    if (!ACCESSES.includes(access)) throw usage('--access is read or write.', issue)
    const key = { name, access: access as 'read' | 'write' }
    await receiveSecret(context, { ...options, bucket: bucket!, spec: issue }, key)
  },
})

const rotate: CommandSpec = command({
  name: 'buckets keys rotate',
  summary: 'Issue a second key like one, which stays valid until it is revoked',
  positionals: [BUCKET],
  options: { ...OPERATION, key: KEY, 'secret-out': SECRET_OUT },
  examples: ['svc buckets keys rotate uploads --key stk_...'],
  async run(context, options, [bucket]) {
    const storageKeyId = keyIdOf(options.key, rotate)
    await receiveSecret(context, { ...options, bucket: bucket!, spec: rotate }, storageKeyId)
  },
})

const revoke: CommandSpec = command({
  name: 'buckets keys revoke',
  summary: 'Revoke a storage key permanently, from its next request on',
  positionals: [BUCKET],
  options: { ...OPERATION, key: KEY },
  examples: ['svc buckets keys revoke uploads --key stk_...'],
  async run(context, options, [bucket]) {
    const storageKeyId = keyIdOf(options.key, revoke)
    const asked = { ...options, expected: undefined }
    const { operationId, changedAtMicros } = changeIntent(context, revoke, asked)
    const remote = await openRemote(context, options)
    const { bucketId } = await findBucket(remote, bucket)
    await context.output.note(`Operation ${operationId}`)
    const named = { bucketId, storageKeyId }
    const request = remote.call(revokeStorageKey, {
      params: named,
      operationId,
      body: { changedAtMicros },
      subjects: named,
    })
    const revoked = await context.output.progress('revoking the key', request)
    await context.output.result(revoked, [`${storageKeyId} is revoked.`])
  },
})

export const storageKeyCommands: readonly CommandSpec[] = [list, issue, rotate, revoke]

interface SecretRequest extends RemoteOptions {
  readonly bucket: string
  readonly 'operation-id': string | undefined
  readonly 'secret-out': string | undefined
  readonly spec: CommandSpec
}

/** Prints the new secret, or writes it to a file that exists before it is requested. */
async function receiveSecret(
  context: Context,
  asked: SecretRequest,
  key: Parameters<typeof issueStorageKey>[3],
): Promise<void> {
  const { bucket, spec, 'secret-out': out } = asked
  const intent = changeIntent(context, spec, { ...asked, expected: undefined })
  const remote = await openRemote(context, asked)
  const { bucketId } = await findBucket(remote, bucket)
  const file = out === undefined ? null : resolvePath(context.environment, out)
  await context.output.note(`Operation ${intent.operationId}`)
  const request = () =>
    context.output
      .progress('issuing the key', issueStorageKey(remote, intent, bucketId, key))
      .catch((error: unknown) => {
        throw withList(error, bucket)
      })
  const issued = await withSecretFile(file, request, ({ secretAccessKey }) => secretAccessKey)
  const shown = { ...issued, secretAccessKey: file === null ? issued.secretAccessKey : null }
  try {
    await context.output.result({ ...shown, secretFile: file }, humanResult(issued, file))
  } catch (error) {
    if (!isFault(error, 'CLIENT_FILE_FAILED') || shown.secretAccessKey === null) throw error
    throw explained(error, { next: `Revoke ${issued.storageKeyId} and issue another key.` })
  }
}

function withList(error: unknown, bucket: string): unknown {
  if (!isFault(error, 'CLIENT_RESULT_UNCERTAIN', 'CLIENT_CHANGE_INTERRUPTED')) return error
  const list = `Run \`svc buckets keys list ${bucket}\`.`
  return explained(error, {
    next: `${list} Revoke a key whose secret was lost, and issue another.`,
  })
}

function humanResult(
  { accessKeyId, secretAccessKey }: StorageKeyIssued,
  file: string | null,
): string[] {
  if (secretAccessKey === null) {
    return [`${accessKeyId} was issued earlier. Its secret is not shown again.`]
  }
  const id = `Access key ID:      ${accessKeyId}`
  if (file !== null) return [id, `The secret access key is in ${file}.`]
  const secret = `Secret access key:  ${secretAccessKey}`
  return [id, secret, 'The secret is shown only once. Store it now.']
}

function keyIdOf(text: string, spec: CommandSpec): StorageKeyId {
  if (isId('stk', text)) return text
  throw usage('--key needs an stk_ identifier.', spec)
}
