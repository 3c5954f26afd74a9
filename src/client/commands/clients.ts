/** `svc clients`: the Application Clients of the linked Environment. */
import { isId } from '../../value/ids.ts'
import { formatTimestamp } from '../../value/plain.ts'
import {
  createApplicationClient,
  listApplicationClients,
} from '../../wire/operations/application-clients.ts'
import { type CommandSpec, command, option, REMOTE_FLAG, requiredOption } from '../contexts.ts'
import { openRemote } from '../roots/remotes.ts'
import { usage } from '../usage.ts'
import { createdAtMicros, parseScopes } from './scopes.ts'

const KINDS = ['public', 'confidential', 'development'] as const
const DEFAULT_SCOPES = 'query,mutation,realtime'
const DEVELOPMENT_SCOPES = 'workspace'

const create: CommandSpec = command({
  name: 'clients create',
  summary: 'Create an Application Client',
  details: ['The same --client-id with the same options creates once, however often it is sent.'],
  options: {
    remote: REMOTE_FLAG,
    root: option('DIR', 'The linked root; by default the working directory'),
    name: requiredOption('NAME', 'Display name'),
    kind: requiredOption('KIND', 'public, confidential or development'),
    scopes: option('LIST', `Maximum scopes of its keys; by default ${DEFAULT_SCOPES}`),
    'client-id': option('app_ID', 'The identifier; a new one by default'),
  },
  examples: ['svc clients create --name web --kind public --scopes query,mutation'],
  async run(context, options) {
    const { name } = options
    const kind = KINDS.find((each) => each === options.kind)
    if (kind === undefined) throw usage(`--kind must be one of ${KINDS.join(', ')}.`, create)
    const clientId = options['client-id'] ?? context.environment.system.ids.make('app')
    if (!isId('app', clientId)) throw usage('--client-id needs an app_ identifier.', create)
    const maximumScopes = parseScopes(
      options.scopes ?? (kind === 'development' ? DEVELOPMENT_SCOPES : DEFAULT_SCOPES),
      create,
    )
    const request = {
      clientId,
      name,
      kind,
      maximumScopes,
      createdAtMicros: createdAtMicros(clientId),
    }
    const remote = await openRemote(context, options)
    const creation = remote.call(createApplicationClient, { body: request })
    const created = await context.output.progress('creating the client', creation)
    await context.output.result(created, [
      `${created.replayed ? 'Created before' : 'Created'}: ${clientId} (${kind}).`,
      `Next: svc credentials create --client ${clientId} --name NAME`,
    ])
  },
})

const list: CommandSpec = command({
  name: 'clients list',
  summary: 'List the Application Clients',
  options: {
    remote: REMOTE_FLAG,
    root: option('DIR', 'The linked root; by default the working directory'),
  },
  async run(context, { root }) {
    const request = (await openRemote(context, { root })).call(listApplicationClients)
    const found = await context.output.progress('reading the clients', request)
    const rows = found.clients.map((client) => [
      client.clientId,
      client.name,
      client.kind,
      client.maximumScopes.join(','),
      formatTimestamp(BigInt(client.createdAtMicros)),
    ])
    const human = context.output.table(['CLIENT', 'NAME', 'KIND', 'SCOPES', 'CREATED'], rows)
    await context.output.result(found, human)
  },
})

export const clientCommands: readonly CommandSpec[] = [create, list]
