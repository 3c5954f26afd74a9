/** `svc link`: links a directory to one Environment after a successful status request. */
import { mkdirSync } from 'node:fs'
import { Fault } from '../../errors/fault.ts'
import { type EnvironmentId, isId, type ProjectId } from '../../value/ids.ts'
import { DESCRIPTOR_FILE } from '../../value/product-root.ts'
import type { ResourceField } from '../../wire/identity/auth.ts'
import { listResources } from '../../wire/operations/identity/resources.ts'
import { readStatus } from '../../wire/operations/status.ts'
import { type CommandSpec, type Context, command, option, requiredOption } from '../contexts.ts'
import { explanation } from '../explanations.ts'
import { withPath } from '../files.ts'
import { parseOrigin } from '../origins.ts'
import { environmentCalls, requireOrigin } from '../roots/remotes.ts'
import {
  createDescriptor,
  createLink,
  LINK_FILE,
  readDescriptor,
  readLink,
  resolvePath,
} from '../roots/roots.ts'
import { OperatorSession } from '../sessions/sessions.ts'
import { usage } from '../usage.ts'

interface Chosen {
  readonly projectId: ProjectId
  readonly environmentId: EnvironmentId
}

export const linkCommand: CommandSpec = command({
  name: 'link',
  summary: 'Link a directory to one Environment',
  details: [
    'Reads the status of the Environment first; only when that succeeds are service.json (where',
    'there is none) and management.json written. Without identifiers they come from service.json.',
    'Without that a terminal shows a list; elsewhere the only Environment there is is linked.',
    'An Environment alone is enough with --environment-id: the server knows its Project.',
  ],
  options: {
    root: requiredOption('DIR', 'The directory'),
    'project-id': option('prj_ID', 'Project'),
    'environment-id': option('env_ID', 'Environment'),
    url: option('ORIGIN', 'Management origin; must be the one of the session'),
  },
  examples: ['svc link --root . --environment-id env_...'],
  async run(context, options) {
    const session = await OperatorSession.open(context)
    const directory = resolvePath(context.environment, options.root)
    if (options.url !== undefined) {
      requireOrigin(session, parseOrigin(context.environment, options.url), '--url names')
    }
    const linked = await readLink(directory)
    if (linked !== null) requireOrigin(session, linked, 'The root is linked to')
    const descriptor = await readDescriptor(directory)
    const chosen =
      (await named(session, options['project-id'], options['environment-id'])) ??
      descriptor ??
      (await choose(context, session))
    requireSame(directory, descriptor, chosen)
    const status = environmentCalls(session, chosen).call(readStatus)
    await context.output.progress('reading the status', status)
    const resource = descriptor === null ? await findResource(session, chosen) : null
    await write(context, { directory, chosen, resource, origin: session.profile.managementOrigin })
    await report(context, { directory, chosen, origin: session.profile.managementOrigin })
  },
})

/** Returns null if neither option is given. The server knows the Project of an Environment. */
async function named(
  session: OperatorSession,
  projectId: string | undefined,
  environmentId: string | undefined,
): Promise<Chosen | null> {
  if (projectId === undefined && environmentId === undefined) return null
  if (!isId('env', environmentId)) {
    throw usage('--environment-id needs an env_ identifier.', linkCommand)
  }
  if (projectId === undefined) {
    return requireLinkable(session, await findResource(session, { environmentId }))
  }
  if (!isId('prj', projectId)) throw usage('--project-id needs a prj_ identifier.', linkCommand)
  return { projectId, environmentId }
}

function requireSame(directory: string, known: Chosen | null, chosen: Chosen): void {
  if (known === null) return
  if (known.projectId === chosen.projectId && known.environmentId === chosen.environmentId) return
  throw new Fault('CLIENT_ROOT_INVALID', {
    detail: `${directory} belongs to ${known.projectId} and ${known.environmentId}.`,
    cause: explanation({ next: 'Link another directory, or leave the identifiers out.' }),
  })
}

/** Finds the Environment, in any Project where none is given. */
async function findResource(
  session: OperatorSession,
  chosen: Partial<Chosen> & Pick<Chosen, 'environmentId'>,
): Promise<ResourceField> {
  const { resources } = await session.call(listResources)
  const found = resources.find(
    ({ projectId, environmentId }) =>
      projectId === (chosen.projectId ?? projectId) && environmentId === chosen.environmentId,
  )
  if (found !== undefined) return found
  throw new Fault('PRODUCT_NOT_FOUND', {
    detail: `${chosen.environmentId} is not among the resources of this session.`,
  })
}

/**
 * Asks for a one-based number of the list on a terminal; any other input fails closed. Without a
 * terminal only a single Environment can be meant.
 */
async function choose(context: Context, session: OperatorSession): Promise<Chosen> {
  const { environment, output } = context
  const { resources } = await output.progress('reading the resources', session.call(listResources))
  if (resources.length === 0) {
    throw new Fault('PRODUCT_NOT_FOUND', {
      detail: 'The grants of this operator contain no Environment of this server.',
      cause: explanation({ next: 'Ask an owner for an invitation to the Environment.' }),
    })
  }
  if (!environment.stdin.isTTY || !environment.stderr.isTTY || output.json) {
    const [only, ...others] = resources
    if (others.length === 0) return requireLinkable(session, only!)
    throw usage(
      `There are ${resources.length} Environments and no terminal to choose one. Give ` +
        '--project-id and --environment-id; `svc resources` lists them.',
      linkCommand,
    )
  }
  const rows = resources.map((resource, i) => [
    String(i + 1),
    resource.name,
    resource.environmentId,
    managementOriginOf(session, resource),
  ])
  const table = output.table(['', 'NAME', 'ENVIRONMENT', 'MANAGEMENT ORIGIN'], rows)
  await output.prompt(`${table.join('\n')}\nNumber: `)
  const line = await environment.stdin.readLine({ echo: true })
  if (line === null) throw new Fault('CLIENT_INTERRUPTED')
  const chosen = /^[1-9][0-9]{0,3}$/.test(line.trim()) ? resources[Number(line) - 1] : undefined
  if (chosen === undefined)
    throw usage(
      'The list has no such number. Type one of the numbers in front of the names.',
      linkCommand,
    )
  return requireLinkable(session, chosen)
}

/** Throws CLIENT_ORIGIN_MISMATCH for a resource that another origin manages. */
function requireLinkable(session: OperatorSession, resource: ResourceField): Chosen {
  requireOrigin(session, managementOriginOf(session, resource), 'The Environment is managed at')
  return { projectId: resource.projectId, environmentId: resource.environmentId }
}

/** Returns the Management origin; a resource without one uses the authentication origin. */
function managementOriginOf(session: OperatorSession, resource: ResourceField): string {
  return resource.managementOrigin ?? session.profile.authenticationOrigin
}

interface Link {
  readonly directory: string
  readonly chosen: Chosen
  readonly origin: string
}

/** Writes the files. The link is last, since it makes the directory usable. */
async function write(
  context: Context,
  link: Link & { readonly resource: ResourceField | null },
): Promise<void> {
  const { directory, chosen, resource, origin } = link
  withPath(directory, () => mkdirSync(directory, { recursive: true }))
  if (resource !== null) {
    const made = createDescriptor(directory, {
      version: 1,
      ...chosen,
      name: resource.name,
      slug: resource.slug,
      createdAtMicros: context.environment.system.nowMicros(),
      workspace: null,
      listen: null,
    })
    if (!made) requireSame(directory, await readDescriptor(directory), chosen)
  }
  if (createLink(directory, origin)) return
  const linked = await readLink(directory)
  if (linked === origin) return
  throw new Fault('CLIENT_ORIGIN_MISMATCH', { detail: `${directory} is linked to ${linked}.` })
}

async function report(context: Context, { directory, chosen, origin }: Link): Promise<void> {
  const { projectId, environmentId } = chosen
  await context.output.result(
    {
      version: 1,
      root: directory,
      projectId,
      environmentId,
      managementOrigin: origin,
      files: [DESCRIPTOR_FILE, LINK_FILE],
    },
    [`Linked ${directory} to ${environmentId} at ${origin}.`],
  )
}
