/**
 * `svc release`: build, publish, validate and, with a Channel, promote. Each step first looks at
 * whether it was done before, so that a broken run is simply run again.
 */

import type { ReleaseId } from '../../value/ids.ts'
import type { Validated } from '../../wire/releases.ts'
import type { Status } from '../../wire/status.ts'
import { type CommandSpec, type Context, command, option, requiredFlag } from '../contexts.ts'
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
import { type Bound, boundIn, parseChannel, parseReleaseId, promoteSettled } from './promote.ts'
import { headOf } from './publish.ts'

export const releaseCommand: CommandSpec = command({
  name: 'release',
  summary: 'Build, publish, validate and promote in one step',
  details: [
    'Without --channel nothing is promoted. With --release an already published Release is',
    'validated instead of building one. Every step may be repeated.',
  ],
  options: {
    remote: requiredFlag('Act on the linked Environment'),
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
    const request = validate(remote, { releaseId, against })
    const validated = await context.output.progress('validating', request)
    await context.output.note(`validate  ${validated.state} (${validated.checks.length} checks)`)
    const bound =
      channel === undefined ? null : await bind(context, remote, releaseId, channel, status)
    await report(context, { releaseId, validated, bound })
  },
})

function optionalChannel(name: string | undefined): string | undefined {
  return name === undefined ? undefined : parseChannel(name, releaseCommand)
}

/** A head that was made of the same package is the publication that this run would make. */
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

/** Expects the Release that the status showed: whoever deployed meanwhile is not overwritten. */
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
  const bound = before ?? (await promoteSettled(context, remote, promotion))
  const remark = bound.changed ? `expected ${expectedReleaseId}` : 'bound before'
  await context.output.note(`promote   ${channel} revision ${bound.revision} (${remark})`)
  return bound
}

interface Outcome {
  readonly releaseId: ReleaseId
  readonly validated: Validated
  readonly bound: Bound | null
}

async function report(context: Context, { releaseId, validated, bound }: Outcome): Promise<void> {
  const { state, checks } = validated
  const channel = bound === null ? null : { ...bound }
  const tail = bound === null ? `${state}; no Channel was given.` : `serves ${bound.channel}.`
  await context.output.result({ version: 1, releaseId, state, checks, channel }, [
    `${releaseId} ${bound === null ? 'is ' : ''}${tail}`,
  ])
}
