/** `svc credentials`: manages Application Keys. A confidential key is shown once and not stored. */
import { isFault } from '../../errors/fault.ts'
import { APPLICATION_SCOPES } from '../../value/application-scopes.ts'
import type { ClientId, CredentialId } from '../../value/ids.ts'
import type { CredentialCreated } from '../../wire/application-clients.ts'
import {
  createCredential,
  deleteCredential,
  listApplicationClients,
  listCredentials,
  revealKey,
  revokeCredential,
  rotateCredential,
} from '../../wire/operations/application-clients.ts'
import {
  type CommandSpec,
  type Context,
  command,
  listOption,
  option,
  requiredOption,
} from '../contexts.ts'
import { explained } from '../explanations.ts'
import { requestCommand } from '../request-commands.ts'
import { openRemote, type Remote } from '../roots/remotes.ts'
import { resolvePath } from '../roots/roots.ts'
import { withSecretFile } from '../secret-files.ts'
import { timeText } from '../timestamps.ts'
import { requireId, usage } from '../usage.ts'
import { REMOTE } from './operations.ts'
import { createdAtMicros, parseScopes } from './scopes.ts'

const DEFAULT_SCOPES = ['mutation', 'query', 'realtime'] as const
const SHOWN_SCOPES = `${DEFAULT_SCOPES.join(',')} or fewer`

const CLIENT = { ...REMOTE, client: requiredOption('app_ID', 'The Application Client') }
const CREDENTIAL = { ...CLIENT, credential: requiredOption('crd_ID', 'The credential') }
const KEY_OUT = option('FILE', 'Write the key to this new file instead of printing it')
const RATE_LIMIT = 'Calls per second that the key may make'

const create: CommandSpec = command({
  name: 'credentials create',
  summary: 'Create an Application Key',
  details: [
    'The key is printed once. With --key-out it is written to a new file (0600) instead. If the',
    'response is lost, find the credential with `svc credentials list`, revoke it and create',
    'another one: a secret key is never shown again.',
  ],
  options: {
    ...CLIENT,
    name: requiredOption('NAME', 'Display name'),
    scopes: listOption('LIST', APPLICATION_SCOPES, `Scopes of the key; by default ${SHOWN_SCOPES}`),
    'rate-limit': option('NUMBER', `${RATE_LIMIT}; by default 2000`),
    'credential-id': option('crd_ID', 'The identifier; a new one by default'),
    'key-out': KEY_OUT,
  },
  examples: ['svc credentials create --client app_... --name ci --key-out ci.key'],
  async run(context, options) {
    const clientId = requireId('app', options.client, '--client', create)
    const credentialId = newIdOf(context, options['credential-id'], create)
    const wanted = options.scopes === undefined ? null : parseScopes(options.scopes)
    const remote = await openRemote(context, options)
    const request = {
      credentialId,
      name: options.name,
      createdAtMicros: createdAtMicros(credentialId),
      ...rateLimitOf(options['rate-limit'], create),
    }
    await receiveKey(context, options['key-out'], {
      label: 'creating the key',
      wanted: { clientId, credentialId },
      request: async () => {
        const scopes = wanted ?? (await defaultScopes(remote, clientId))
        return remote.call(createCredential, {
          params: { clientId },
          body: { ...request, scopes },
          subjects: { clientId },
        })
      },
    })
  },
})

/** Returns all default scopes for an unknown client, which the server then rejects. */
async function defaultScopes(remote: Remote, clientId: ClientId) {
  const { clients } = await remote.call(listApplicationClients)
  const allowed = clients.find((each) => each.clientId === clientId)?.maximumScopes
  const usual = DEFAULT_SCOPES.filter((scope) => allowed?.some((each) => each === scope) ?? true)
  return usual.length === 0 ? [...DEFAULT_SCOPES] : usual
}

const rotate: CommandSpec = command({
  name: 'credentials rotate',
  summary: 'Create a replacement of a key, which stays valid until it is revoked',
  details: [
    'Deliver the new key, check with `svc credentials list` that it is used, then revoke the old',
    'one. Options that are not given keep the values of the old key.',
  ],
  options: {
    ...CREDENTIAL,
    name: option('NAME', 'Display name'),
    scopes: listOption('LIST', APPLICATION_SCOPES, 'Scopes of the key'),
    'rate-limit': option('NUMBER', RATE_LIMIT),
    'credential-id': option('crd_ID', 'The identifier of the new key; a new one by default'),
    'key-out': KEY_OUT,
  },
  examples: ['svc credentials rotate --client app_... --credential crd_... --key-out k'],
  async run(context, options) {
    const source = pathOf(options, rotate)
    const credentialId = newIdOf(context, options['credential-id'], rotate)
    const request = {
      credentialId,
      createdAtMicros: createdAtMicros(credentialId),
      ...(options.name !== undefined && { name: options.name }),
      ...(options.scopes !== undefined && { scopes: parseScopes(options.scopes) }),
      ...rateLimitOf(options['rate-limit'], rotate),
    }
    const remote = await openRemote(context, options)
    await receiveKey(context, options['key-out'], {
      label: 'rotating the key',
      wanted: { clientId: source.clientId, credentialId },
      request: () =>
        remote.call(rotateCredential, { params: source, body: request, subjects: { ...source } }),
    })
  },
})

const reveal: CommandSpec = command({
  name: 'credentials reveal',
  summary: 'Show the key of a public client again',
  details: ['Other keys are shown once and not stored: replace a lost one with `rotate`.'],
  options: { ...CREDENTIAL, 'key-out': KEY_OUT },
  async run(context, options) {
    const credential = pathOf(options, reveal)
    const remote = await openRemote(context, options)
    const file = keyFileOf(context, options['key-out'])
    const request = () =>
      context.output
        .progress('reading the key', remote.call(revealKey, named(credential)))
        .catch((error) => {
          if (!isFault(error, 'PRODUCT_INVALID')) throw error
          throw explained(error, { next: 'Replace a lost key with `svc credentials rotate`.' })
        })
    const revealed = await withSecretFile(file, request, ({ key }) => key)
    const { credentialId } = credential
    await context.output.result(
      { ...revealed, key: file === null ? revealed.key : null, keyFile: file },
      [file === null ? (revealed.key ?? '') : `The key of ${credentialId} is in ${file}.`],
    )
  },
})

const revoke: CommandSpec = requestCommand({
  name: 'credentials revoke',
  summary: 'Reject a key permanently, from its next call on',
  options: CREDENTIAL,
  input: (options) => pathOf(options, revoke),
  progress: 'revoking the key',
  request: (remote, credential) => remote.call(revokeCredential, named(credential)),
  lines: (_, { input: { credentialId } }) => [`${credentialId} is revoked.`],
})

const remove: CommandSpec = requestCommand({
  name: 'credentials delete',
  summary: 'Delete a revoked credential',
  details: ['Its identifier stays reserved and is listed as deleted.'],
  options: CREDENTIAL,
  input: (options) => pathOf(options, remove),
  progress: 'deleting the credential',
  async request(remote, credential) {
    await remote.call(deleteCredential, named(credential))
    return { version: 1, credentialId: credential.credentialId, state: 'deleted' }
  },
  explains: {
    PRODUCT_STATE_CONFLICT: {
      next: 'Revoke it with `svc credentials revoke`, then delete it.',
    },
  },
  lines: ({ credentialId }) => [`${credentialId} is deleted.`],
})

interface CredentialPath {
  readonly clientId: ClientId
  readonly credentialId: CredentialId
}

function named(credential: CredentialPath) {
  return { params: credential, subjects: { ...credential } }
}

interface KeyRequest {
  readonly label: string
  /** The credential that the request creates. */
  readonly wanted: CredentialPath
  readonly request: () => Promise<CredentialCreated>
}

/** Prints the new key, or writes it to a file that exists before the key is requested. */
async function receiveKey(
  context: Context,
  keyOut: string | undefined,
  { label, wanted, request }: KeyRequest,
): Promise<void> {
  const file = keyFileOf(context, keyOut)
  const creation = (): Promise<CredentialCreated> =>
    context.output.progress(
      label,
      request().catch((error) => {
        throw withList(error, wanted)
      }),
    )
  const created = await withSecretFile(file, creation, ({ key }) => key)
  const document = { ...created, key: file === null ? created.key : null, keyFile: file }
  try {
    await context.output.result(document, humanResult(created, file))
  } catch (error) {
    throw document.key === null ? error : unshown(error, wanted)
  }
}

/** Explains a key that is active although it was not delivered. */
function unshown(error: unknown, { credentialId }: CredentialPath): unknown {
  if (!isFault(error, 'CLIENT_FILE_FAILED')) return error
  const next = `Revoke ${credentialId}, which was created, and create another one.`
  return explained(error, { next })
}

function withList(error: unknown, { clientId, credentialId }: CredentialPath): unknown {
  if (!isFault(error, 'CLIENT_RESULT_UNCERTAIN', 'CLIENT_CHANGE_INTERRUPTED')) return error
  return explained(error, {
    next:
      `Run \`svc credentials list --client ${clientId}\`. If it lists ` +
      `${credentialId}, revoke that and create another one.`,
  })
}

function humanResult(
  { credential, key, secretShownOnce }: CredentialCreated,
  file: string | null,
): string[] {
  const { credentialId } = credential
  if (key === null) return [`${credentialId} was created earlier. Its key is not shown again.`]
  if (file !== null) return [`Created ${credentialId}. The key is in ${file}.`]
  const once = secretShownOnce ? ['This key is shown only once. Store it now.'] : []
  return [`Created ${credentialId}.`, key, ...once]
}

const list: CommandSpec = requestCommand({
  name: 'credentials list',
  summary: 'List the keys of an Application Client, without the keys themselves',
  options: CLIENT,
  input: ({ client }) => ({ clientId: requireId('app', client, '--client', list) }),
  progress: 'reading the credentials',
  request: (remote, named) => remote.call(listCredentials, { params: named, subjects: named }),
  rows: ({ credentials }) => credentials,
  columns: {
    CREDENTIAL: 'credentialId',
    NAME: 'name',
    STATE: 'state',
    SCOPES: 'scopes',
    CREATED: 'createdAtMicros',
    'LAST USED': ({ lastUsedAtMicros }) => timeText(lastUsedAtMicros, 'never'),
  },
})

function pathOf(
  { client, credential }: { readonly client: string; readonly credential: string },
  command: CommandSpec,
): CredentialPath {
  const clientId = requireId('app', client, '--client', command)
  return { clientId, credentialId: requireId('crd', credential, '--credential', command) }
}

function newIdOf(
  { environment }: Context,
  text: string | undefined,
  command: CommandSpec,
): CredentialId {
  const credentialId = text ?? environment.system.ids.make('crd')
  return requireId('crd', credentialId, '--credential-id', command)
}

function rateLimitOf(
  text: string | undefined,
  command: CommandSpec,
): { readonly rateLimit?: number } {
  if (text === undefined) return {}
  if (/^[1-9][0-9]{0,6}$/.test(text)) return { rateLimit: Number(text) }
  throw usage('--rate-limit needs a number from 1 to 1000000.', command)
}

function keyFileOf({ environment }: Context, keyOut: string | undefined): string | null {
  return keyOut === undefined ? null : resolvePath(environment, keyOut)
}

export const credentialCommands: readonly CommandSpec[] = [
  create,
  list,
  rotate,
  reveal,
  revoke,
  remove,
]
