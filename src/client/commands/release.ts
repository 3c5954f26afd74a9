/**
 * `svc release`: builds, publishes, validates and, with a Channel, promotes. Each step first checks
 * whether it is done already, so that an interrupted run can be repeated.
 */

import type { ReleaseId } from '../../value/ids.ts'
import type { Validated } from '../../wire/releases.ts'
import type { Status } from '../../wire/status.ts'
import { type CommandSpec, type Context, command, option, REMOTE_FLAG } from '../contexts.ts'
import { loadPackage, PACKAGE_OPTIONS, type PackageOptions } from '../packages.ts'
import {
  EMPTY,
  type Expected,
  openRemote,
  publish,
  type Remote,
  readStatus,
  validate,
} from '../remotes.ts'
import { ARCHIVED } from './operations.ts'
import { type Bound, boundIn, parseChannel, parseReleaseId, promoteOrReconcile } from './promote.ts'
import { headOf } from './publish.ts'

export const releaseCommand: CommandSpec = command({
  name: 'release',
  summary: 'Build, publish, validate and promote in one step',
  details: [
    'Without --channel nothing is promoted. With --release a published Release is validated and no',
    'package is built. Every step may be repeated.',
  ],
  options: {
    remote: REMOTE_FLAG,
    root: option('DIR', 'The linked root; by default the working directory'),
    ...PACKAGE_OPTIONS,
    release: option('rel_ID', 'A published Release, instead of a package'),
    against: option('NAME', 'Compare with the Release of this Channel'),
    channel: option('NAME', 'The Channel to promote'),
  },
  examples: ['svc release --remote --root . --channel production'],
  async run(context, options) {
    const against = optionalChannel(options.against)
    const channel = optionalChannel(options.channel)
    const remote = await openRemote(context, options.root)
    const given = options.release
    const published =
      given === undefined
        ? await publishOnce(context, remote, options)
        : { releaseId: parseReleaseId(given, releaseCommand), status: await readStatus(remote) }
    const { releaseId, status } = published
    if (status.lifecycle === 'archived') await context.output.note(ARCHIVED)
    const request = validate(remote, { releaseId, against })
    const validated = await context.output.progress('validating', request)
    await context.output.note(`validate  ${validated.state} (${validated.checks.length} checks)`)
    const bound =
      channel === undefined ? null : await bind(context, remote, releaseId, channel, status)
    const { lifecycle } = status
    await report(context, { releaseId, validated, bound, lifecycle })
  },
})

function optionalChannel(name: string | undefined): string | undefined {
  return name === undefined ? undefined : parseChannel(name, releaseCommand)
}

/** Publishes the package, unless it is the head of its Workspace already. */
async function publishOnce(
  context: Context,
  remote: Remote,
  options: PackageOptions,
): Promise<{ releaseId: ReleaseId; status: Status }> {
  const { output } = context
  const { frame, manifest, packageDigest } = await loadPackage(context, remote, options)
  await output.note(`build     ${manifest.workspace}, ${frame.length} bytes, ${packageDigest}`)
  const status = await output.progress('reading the status', readStatus(remote))
  const head = headOf(status, manifest.workspace)
  const current = status.releases.find(
    ({ releaseId, state }) => releaseId === head.releaseId && state !== 'retired',
  )
  if (current !== undefined && current.packageDigest === packageDigest) {
    await output.note(`publish   ${current.releaseId} (published before)`)
    return { releaseId: current.releaseId, status }
  }
  const request = publish(remote, { frame, expectedHead: head.expectedHead })
  const { releaseId, revisionId } = await output.progress('publishing', request)
  await output.note(`publish   ${releaseId} (${revisionId}, expected head ${head.expectedHead})`)
  return { releaseId, status }
}

/** Binds the Channel, which must still be bound as the status showed, to the Release. */
async function bind(
  context: Context,
  remote: Remote,
  releaseId: ReleaseId,
  channel: string,
  status: Status,
): Promise<Bound> {
  const current = status.channels.find((item) => item.channel === channel)?.releaseId
  const expectedReleaseId: Expected<ReleaseId> = current ?? EMPTY
  const promotion = { channel, releaseId, expectedReleaseId }
  const before = boundIn(status, promotion)
  const bound = before ?? (await promoteOrReconcile(context, remote, promotion))
  const remark = bound.changed ? `expected ${expectedReleaseId}` : 'bound before'
  await context.output.note(`promote   ${channel} revision ${bound.revision} (${remark})`)
  return bound
}

interface Outcome {
  readonly releaseId: ReleaseId
  readonly validated: Validated
  readonly bound: Bound | null
  readonly lifecycle: Status['lifecycle']
}

async function report(
  context: Context,
  { releaseId, validated, bound, lifecycle }: Outcome,
): Promise<void> {
  const { state, checks } = validated
  const channel = bound === null ? null : { ...bound }
  const serves = lifecycle === 'archived' ? 'is bound to' : 'serves'
  const tail = bound === null ? `is ${state}; no Channel was given.` : `${serves} ${bound.channel}.`
  await context.output.result({ version: 1, releaseId, state, checks, channel, lifecycle }, [
    `${releaseId} ${tail}`,
  ])
}
