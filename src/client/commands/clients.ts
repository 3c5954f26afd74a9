/** `svc clients`: the Application Clients of the Environment. */
import { APPLICATION_SCOPES } from '../../value/application-scopes.ts'
import {
  createApplicationClient,
  listApplicationClients,
} from '../../wire/operations/application-clients.ts'
import {
  type CommandSpec,
  listOption,
  option,
  requiredChoice,
  requiredOption,
} from '../contexts.ts'
import { requestCommand } from '../request-commands.ts'
import { requireId } from '../usage.ts'
import { REMOTE } from './operations.ts'
import { createdAtMicros, parseScopes } from './scopes.ts'

const KINDS = ['public', 'confidential', 'development'] as const
const DEFAULT_SCOPES = 'query,mutation,realtime'
const DEVELOPMENT_SCOPES = 'workspace'

const create: CommandSpec = requestCommand({
  name: 'clients create',
  summary: 'Create an Application Client',
  details: ['The same --client-id with the same options creates once, however often it is sent.'],
  options: {
    ...REMOTE,
    name: requiredOption('NAME', 'Display name'),
    kind: requiredChoice('KIND', KINDS, 'public, confidential or development'),
    scopes: listOption(
      'LIST',
      APPLICATION_SCOPES,
      `Maximum scopes of its keys; by default ${DEFAULT_SCOPES}`,
    ),
    'client-id': option('app_ID', 'The identifier; a new one by default'),
  },
  examples: ['svc clients create --name web --kind public --scopes query,mutation'],
  input({ name, kind, scopes, ...options }, _, { environment }) {
    const given = options['client-id'] ?? environment.system.ids.make('app')
    const clientId = requireId('app', given, '--client-id', create)
    const usual = kind === 'development' ? DEVELOPMENT_SCOPES : DEFAULT_SCOPES
    const maximumScopes = parseScopes(scopes ?? usual)
    return { clientId, name, kind, maximumScopes, createdAtMicros: createdAtMicros(clientId) }
  },
  progress: 'creating the client',
  request: (remote, body) => remote.call(createApplicationClient, { body }),
  lines: ({ replayed }, { input: { clientId, kind } }) => [
    `${replayed ? 'Created before' : 'Created'}: ${clientId} (${kind}).`,
    `Next: svc credentials create --client ${clientId} --name NAME`,
  ],
})

const list = requestCommand({
  name: 'clients list',
  summary: 'List the Application Clients',
  options: REMOTE,
  progress: 'reading the clients',
  request: (remote) => remote.call(listApplicationClients),
  rows: ({ clients }) => clients,
  columns: {
    CLIENT: 'clientId',
    NAME: 'name',
    KIND: 'kind',
    SCOPES: 'maximumScopes',
    CREATED: 'createdAtMicros',
  },
})

export const clientCommands: readonly CommandSpec[] = [create, list]
