/** `svc buckets keys`: manages storage keys. A secret is shown once. */
import { isFault } from '../../../errors/fault.ts'
import type { StorageKeyIssued } from '../../../wire/files/buckets.ts'
import { revokeStorageKey } from '../../../wire/operations/buckets/storage-keys.ts'
import {
  argument,
  type CommandSpec,
  type Context,
  command,
  option,
  requiredChoice,
  requiredOption,
} from '../../contexts.ts'
import { explained } from '../../explanations.ts'
import { requestCommand } from '../../request-commands.ts'
import type { RemoteOptions } from '../../roots/remotes.ts'
import { resolvePath } from '../../roots/roots.ts'
import { withSecretFile } from '../../secret-files.ts'
import { requireId } from '../../usage.ts'
import { changeIntent, OPERATION_ID, operationText, REMOTE } from '../operations.ts'
import { issueStorageKey, listStorageKeys, openBucket } from './requests.ts'

const BUCKET = argument('BUCKET', 'The name of the bucket')
const KEY = requiredOption('stk_ID', 'The storage key')
const OPERATION = { ...REMOTE, 'operation-id': OPERATION_ID } as const
const SECRET_OUT = option('FILE', 'Write the secret to this new file instead of printing it')

const list = requestCommand({
  name: 'buckets keys list',
  summary: 'List the storage keys of a bucket, without secrets',
  positionals: [BUCKET],
  options: REMOTE,
  input: (_, [name]) => ({ name }),
  open: (context, at, { name }) => openBucket(context, at, name),
  progress: 'reading the keys',
  request: ({ remote, bucket }) => listStorageKeys(remote, bucket.bucketId),
  rows: ({ items }) => items,
  columns: {
    KEY: 'storageKeyId',
    NAME: 'name',
    ACCESS: 'access',
    STATE: 'state',
    CREATED: 'createdAtMicros',
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
    access: requiredChoice('ACCESS', ['read', 'write'], 'read or write; write includes reading'),
    'secret-out': SECRET_OUT,
  },
  examples: ['svc buckets keys issue uploads --name backup --access read'],
  async run(context, options, [bucket]) {
    const { name, access } = options
    await receiveSecret(context, { ...options, bucket: bucket!, spec: issue }, { name, access })
  },
})

const rotate: CommandSpec = command({
  name: 'buckets keys rotate',
  summary: 'Issue a second key like one, which stays valid until it is revoked',
  positionals: [BUCKET],
  options: { ...OPERATION, key: KEY, 'secret-out': SECRET_OUT },
  examples: ['svc buckets keys rotate uploads --key stk_...'],
  async run(context, options, [bucket]) {
    const storageKeyId = requireId('stk', options.key, '--key', rotate)
    await receiveSecret(context, { ...options, bucket: bucket!, spec: rotate }, storageKeyId)
  },
})

const revoke: CommandSpec = requestCommand({
  name: 'buckets keys revoke',
  summary: 'Revoke a storage key permanently, from its next request on',
  positionals: [BUCKET],
  options: { ...OPERATION, key: KEY },
  examples: ['svc buckets keys revoke uploads --key stk_...'],
  input: (options, [name], context) => ({
    name,
    storageKeyId: requireId('stk', options.key, '--key', revoke),
    ...changeIntent(context, revoke, options),
  }),
  open: (context, at, { name }) => openBucket(context, at, name),
  announce: operationText,
  progress: 'revoking the key',
  request({ remote, bucket }, { storageKeyId, operationId, changedAtMicros }) {
    const named = { bucketId: bucket.bucketId, storageKeyId }
    return remote.call(revokeStorageKey, {
      params: named,
      operationId,
      body: { changedAtMicros },
      subjects: named,
    })
  },
  lines: (_, { input: { storageKeyId } }) => [`${storageKeyId} is revoked.`],
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
  const intent = changeIntent(context, spec, { 'operation-id': asked['operation-id'] })
  const {
    remote,
    bucket: { bucketId },
  } = await openBucket(context, asked, bucket)
  const file = out === undefined ? null : resolvePath(context.environment, out)
  await context.output.note(operationText(intent))
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
