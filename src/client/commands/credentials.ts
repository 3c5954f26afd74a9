/** `svc credentials`: Application Keys. A confidential key is shown once and kept nowhere. */
import { Fault, isFault } from '../../errors/fault.ts'
import { type ClientId, type CredentialId, isId } from '../../value/ids.ts'
import { formatTimestamp } from '../../value/plain.ts'
import { usage } from '../arguments.ts'
import { type CommandSpec, command, option, requiredFlag, requiredOption } from '../contexts.ts'
import { createCredential, listCredentials, openRemote } from '../remotes.ts'
import { resolvePath } from '../roots.ts'
import { withSecretFile } from '../secret-files.ts'
import { createdAtMicros, parseScopes } from './scopes.ts'

const DEFAULT_SCOPES = 'query,mutation'

const create: CommandSpec = command({
  name: 'credentials create',
  summary: 'Create an Application Key',
  details: [
    'The key is printed once. With --key-out it goes into a new file (0600) instead. After a lost',
    'answer look at `svc credentials list` and create another one; a secret key is never repeated.',
  ],
  options: {
    remote: requiredFlag('Act on the linked Environment'),
    root: option('DIR', 'The linked root; by default the working directory'),
    client: requiredOption('app_ID', 'The Application Client'),
    name: requiredOption('NAME', 'What people see'),
    scopes: option('LIST', `What the key may do; by default ${DEFAULT_SCOPES}`),
    'credential-id': option('crd_ID', 'The identifier; a new one by default'),
    'key-out': option('FILE', 'Write the key to this new file instead of printing it'),
  },
  examples: ['svc credentials create --remote --client app_... --name ci --key-out ci.key'],
  async run(context, options) {
    const clientId = clientIdOf(options.client, create)
    const credentialId = options['credential-id'] ?? context.environment.system.ids.make('crd')
    if (!isId('crd', credentialId)) throw usage('--credential-id needs a crd_ identifier.', create)
    const scopes = parseScopes(options.scopes ?? DEFAULT_SCOPES, create)
    const remote = openRemote(context, options.root)
    const keyOut = options['key-out']
    const file = keyOut === undefined ? null : resolvePath(context.environment, keyOut)
    const request = { credentialId, name: options.name, scopes }
    const creation = (): Promise<Created> =>
      context.output.progress(
        'creating the key',
        createCredential(remote, clientId, {
          ...request,
          createdAtMicros: createdAtMicros(credentialId),
        }).catch((error) => {
          throw explained(error, clientId, credentialId)
        }),
      )
    const created = await withSecretFile(file, creation, ({ key }) => key)
    await context.output.result(
      { ...created, key: file === null ? created.key : null, keyFile: file },
      humanResult(created, file),
    )
  },
})

function explained(error: unknown, clientId: ClientId, credentialId: CredentialId): unknown {
  if (!isFault(error, 'CLIENT_RESULT_UNCERTAIN')) return error
  return new Fault('CLIENT_RESULT_UNCERTAIN', {
    detail:
      `Look for ${credentialId} in \`svc credentials list --remote --client ${clientId}\`; ` +
      'if it is there and secret, revoke it and create another one.',
    cause: error,
  })
}

interface Created {
  readonly credential: { readonly credentialId: string }
  readonly key: string | null
  readonly secretShownOnce: boolean
}

function humanResult({ credential, key, secretShownOnce }: Created, file: string | null): string[] {
  const { credentialId } = credential
  if (key === null) return [`Created before: ${credentialId}. Its key was shown then.`]
  if (file !== null) return [`Created ${credentialId}. The key is in ${file}.`]
  const once = secretShownOnce ? ['This key is shown once; keep it now.'] : []
  return [`Created ${credentialId}.`, key, ...once]
}

const list: CommandSpec = command({
  name: 'credentials list',
  summary: 'List the keys of an Application Client, without the keys themselves',
  options: {
    remote: requiredFlag('Act on the linked Environment'),
    root: option('DIR', 'The linked root; by default the working directory'),
    client: requiredOption('app_ID', 'The Application Client'),
  },
  async run(context, { root, client }) {
    const clientId = clientIdOf(client, list)
    const request = listCredentials(openRemote(context, root), clientId)
    const found = await context.output.progress('reading the credentials', request)
    const rows = found.credentials.map((credential) => [
      credential.credentialId,
      credential.name,
      credential.state,
      credential.scopes.join(','),
      formatTimestamp(BigInt(credential.createdAtMicros)),
      credential.lastUsedAtMicros === null
        ? 'never'
        : formatTimestamp(BigInt(credential.lastUsedAtMicros)),
    ])
    const head = ['CREDENTIAL', 'NAME', 'STATE', 'SCOPES', 'CREATED', 'LAST USED']
    await context.output.result(found, context.output.table(head, rows))
  },
})

function clientIdOf(text: string, command: CommandSpec): ClientId {
  if (isId('app', text)) return text
  throw usage('--client needs an app_ identifier.', command)
}

export const credentialCommands: readonly CommandSpec[] = [create, list]
