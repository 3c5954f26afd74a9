/** `svc promote`: binds a Channel to a validated Release. */
import { type Fault, isFault } from '../../errors/fault.ts'
import { isId, type ReleaseId } from '../../value/ids.ts'
import type { Promoted } from '../../wire/channels.ts'
import { promoteRelease } from '../../wire/operations/channels.ts'
import { readStatus } from '../../wire/operations/status.ts'
import type { Status } from '../../wire/status.ts'
import {
  type CommandSpec,
  type Context,
  command,
  flag,
  option,
  requiredOption,
} from '../contexts.ts'
import { explained } from '../explanations.ts'
import { EMPTY, type Expected, openRemote, type Remote } from '../roots/remotes.ts'
import { requireId, usage } from '../usage.ts'
import { LINKED } from './operations.ts'
import { progressOf, serveAlone } from './serve-policy.ts'

const CHANNEL = /^[a-z][a-z0-9-]{0,62}$/

export const promoteCommand: CommandSpec = command({
  name: 'promote',
  summary: 'Bind a Channel to a validated Release',
  details: [
    'With --expected the Channel is only bound if it is bound to that Release now. With --serve',
    'the Release then serves all calls of environment:default.',
  ],
  options: {
    ...LINKED,
    channel: requiredOption('NAME', 'The Channel'),
    release: requiredOption('rel_ID', 'The Release'),
    expected: option('empty|rel_ID', 'The Release that the Channel must be bound to now'),
    serve: flag('Let only this Release serve environment:default'),
  },
  examples: ['svc promote --channel production --release rel_... --expected empty'],
  async run(context, options) {
    const channel = parseChannel(options.channel, promoteCommand)
    const releaseId = parseReleaseId(options.release, promoteCommand)
    const expectedReleaseId = parseExpected(options.expected)
    const remote = await openRemote(context, options)
    const bound = await promoteOrReconcile(context, remote, {
      channel,
      releaseId,
      expectedReleaseId,
    })
    const served = options.serve ? await serve(context, remote, releaseId) : null
    const policy = served === null ? null : served.desired.revision
    await context.output.result({ version: 1, ...bound, servingPolicyRevision: policy }, [
      `${channel} is bound to ${releaseId} (revision ${bound.revision}).`,
      ...(served === null ? [] : [`environment:default: ${progressOf(served)}`]),
    ])
  },
})

function serve(context: Context, remote: Remote, releaseId: ReleaseId) {
  return context.output.progress('setting the policy', serveAlone(context, remote, releaseId))
}

export function parseChannel(text: string, command: CommandSpec): string {
  if (CHANNEL.test(text)) return text
  throw usage('--channel needs a name such as production.', command)
}

export function parseReleaseId(text: string, command: CommandSpec, name = 'release'): ReleaseId {
  return requireId('rel', text, `--${name}`, command)
}

function parseExpected(text: string | undefined): Expected<ReleaseId> | undefined {
  if (text === undefined || text === EMPTY || isId('rel', text)) return text
  throw usage('--expected needs `empty` or a rel_ identifier.', promoteCommand)
}

export interface Bound {
  readonly channel: string
  readonly releaseId: string
  readonly revision: string
  /** False if the Channel was bound to the Release before. */
  readonly changed: boolean
  /** The Release that the Channel was bound to before; null for none. */
  readonly previousReleaseId: string | null
}

/** Returns the binding in the status; null if the Channel is not bound to the Release. */
export function boundIn(status: Status, { channel, releaseId }: Binding): Bound | null {
  const found = status.channels.find((item) => item.channel === channel)
  if (found?.releaseId !== releaseId) return null
  const previousReleaseId = found.history[0] ?? null
  return { channel, releaseId, revision: found.revision, changed: false, previousReleaseId }
}

interface Binding {
  readonly channel: string
  readonly releaseId: ReleaseId
}

/** Adds the current state, which the error response does not repeat, and what it calls for. */
async function withState(
  remote: Remote,
  fault: Fault,
  { channel, releaseId }: Binding,
): Promise<Fault> {
  const status = await remote.call(readStatus).catch(() => null)
  if (status === null) return fault
  if (fault.code === 'PRODUCT_CAS_CONFLICT') {
    const bound = status.channels.find((item) => item.channel === channel)?.releaseId
    return explained(fault, { detail: `${channel} is bound to ${bound ?? 'no Release'}.` })
  }
  const state = status.releases.find((item) => item.releaseId === releaseId)?.state
  const release = `Run \`svc release --release ${releaseId}\``
  const next = {
    published: `${release} to validate it, then repeat the command.`,
    rejected: `${release} to see the failed checks, then correct and publish the Workspace.`,
    validated: 'Choose an earlier Release of the history that `svc status` shows.',
    retired: null,
  }
  return explained(fault, { next: state === undefined ? null : next[state] })
}

export function promoteOrReconcile(
  context: Context,
  remote: Remote,
  {
    channel,
    releaseId,
    expectedReleaseId,
  }: Binding & { readonly expectedReleaseId: Expected<ReleaseId> | undefined },
): Promise<Bound> {
  const request = remote.call(promoteRelease, {
    params: { channel },
    body: { releaseId, expectedReleaseId },
    subjects: { channel, releaseId },
  })
  return bindOrReconcile(context, remote, { channel, releaseId, label: 'promoting', request })
}

/** Waits for the response. If it is lost, the status tells whether the Channel is bound. */
export async function bindOrReconcile(
  context: Context,
  remote: Remote,
  asked: Binding & { readonly label: string; readonly request: Promise<Promoted> },
): Promise<Bound> {
  try {
    const { channel, releaseId, revision, previousReleaseId } = await context.output.progress(
      asked.label,
      asked.request,
    )
    return { channel, releaseId, revision, changed: true, previousReleaseId }
  } catch (error) {
    if (isFault(error, 'PRODUCT_STATE_CONFLICT', 'PRODUCT_CAS_CONFLICT')) {
      throw await withState(remote, error, asked)
    }
    if (!isFault(error, 'CLIENT_RESULT_UNCERTAIN')) throw error
    await context.output.note('The response was lost. Reading the status.')
    const status = await remote.call(readStatus).catch(() => null)
    const bound = status === null ? null : boundIn(status, asked)
    if (bound === null) throw error
    return { ...bound, changed: true }
  }
}
