/** The reference of authorization, from the operations, the capabilities and the roles. */
import {
  DEVELOPMENT_ROUTES,
  FUNCTIONS_DOCUMENT,
  INVOCATIONS,
  PLAIN_CALLS,
  PROBES,
} from '../../src/http/application/routes.ts'
import { CAPABILITIES, capabilitiesOfRole, ROLES } from '../../src/value/capabilities.ts'
import { MANAGEMENT_OPERATIONS } from '../../src/wire/operations/management.ts'
import { ENVIRONMENT_BASE, type ManagementOperation } from '../../src/wire/operations/operation.ts'
import { code, table } from './markdown.ts'

export function accessDocument(): string {
  return [
    HEAD,
    `## Roles and capabilities\n\n${table(['Capability', ...ROLES, 'Routes'], capabilityRows())}`,
    RESERVED,
    `## Routes of the management address\n\n${MANAGEMENT}\n${table(COLUMNS, managementRows())}`,
    `## Routes of the application address\n\n${APPLICATION}\n${table(COLUMNS, applicationRows())}`,
  ].join('\n')
}

const COLUMNS = ['Route', 'Needs', 'What it does']

function capabilityRows(): string[][] {
  return CAPABILITIES.map((capability) => {
    const routes = MANAGEMENT_OPERATIONS.filter(
      ({ access }) => access.kind !== 'public' && access.capability === capability,
    )
    const granted = ROLES.map((role) =>
      capabilitiesOfRole(role).includes(capability) ? 'yes' : '',
    )
    return [code(capability), ...granted, String(routes.length)]
  })
}

function managementRows(): string[][] {
  return MANAGEMENT_OPERATIONS.map((operation) => {
    const path = operation.path.replace(ENVIRONMENT_BASE, '{base}')
    return [code(`${operation.method} ${path}`), needs(operation), operation.summary]
  })
}

function needs({ access, authorities }: ManagementOperation): string {
  if (access.kind === 'public') {
    const ways = authorities.map((each) => each.map((name) => AUTHORITIES[name]).join(' and '))
    return ways.length === 0 ? 'nothing' : ways.join(', or ')
  }
  return access.capability === null ? 'a session' : code(access.capability)
}

const AUTHORITIES = {
  operator: 'a session',
  externalIdentity: 'a token of the identity provider',
  managedSource: 'the managed enrollment token',
}

function applicationRows(): string[][] {
  return [
    ...[...PLAIN_CALLS, FUNCTIONS_DOCUMENT, ...INVOCATIONS].map(({ method, path, summary }) => [
      code(`${method} ${path}`),
      'an Application Key',
      summary,
    ]),
    ...DEVELOPMENT_ROUTES.map(({ method, path, summary }) => [
      code(`${method} ${path}`),
      'a development key',
      summary,
    ]),
    ...PROBES.map(({ method, path, summary }) => [code(`${method} ${path}`), 'nothing', summary]),
  ]
}

const HEAD = `# Access: capabilities, roles, and what each route needs

A grant gives an operator a role at a scope: the installation, one Project or one Environment. A
role is a set of capabilities. The server checks capabilities and scope, never the name of a role.
A grant at a wider scope also holds inside of it.
`

const RESERVED = `A capability without routes is reserved for a later version. Roles already grant
it.
`

const MANAGEMENT = `\`{base}\` is \`${ENVIRONMENT_BASE}\`. Its
routes need the capability at that Environment. The others need it at some scope, and check the
scope of the object that they read or change. \`GET /v1/openapi.json\` describes every request and
response.
`

const APPLICATION = `The key must have the scope of the call, and the Function's own policies
apply: see [identity](identity.md). A development key calls no Function: it changes Workspaces, and
only in an Environment whose purpose is \`development\` or \`preview\` and that allows Workspace
targets; elsewhere its routes answer 404.
`
