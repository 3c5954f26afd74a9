/** `svc publish`: makes a package the head of its Workspace, without serving it. */
import { type Fault, isFault } from '../../errors/fault.ts'
import { isId, type ReleaseId, type WorkspaceRevisionId } from '../../value/ids.ts'
import { readStatus } from '../../wire/operations/status.ts'
import type { Status } from '../../wire/status.ts'
import { type CommandSpec, command, option } from '../contexts.ts'
import { explained } from '../explanations.ts'
import { loadPackage, PACKAGE_OPTIONS, sourceDirectory } from '../packages.ts'
import { PROVENANCE_DETAILS, PROVENANCE_OPTIONS, readProvenance } from '../provenance/provenance.ts'
import { EMPTY, type Expected, openRemote, publish } from '../roots/remotes.ts'
import { usage } from '../usage.ts'
import { LINKED } from './operations.ts'

export const publishCommand: CommandSpec = command({
  name: 'publish',
  summary: 'Publish a package to the linked Environment',
  details: [
    'The expected head is read from the status unless it is given. Publishing the same package',
    'again with the same expected head changes nothing.',
    ...PROVENANCE_DETAILS,
  ],
  options: {
    ...LINKED,
    ...PACKAGE_OPTIONS,
    ...PROVENANCE_OPTIONS,
    'expected-head': option('empty|wsr_ID', 'The head that the Workspace must have now'),
  },
  examples: ['svc publish --root . --package app.svcpkg --expected-head empty'],
  async run(context, options) {
    const given = parseHead(options['expected-head'])
    const remote = await openRemote(context, options)
    const directory = sourceDirectory(context, remote, options)
    const { message } = options
    const declared = { message, directory }
    const provenance = await readProvenance(context, publishCommand, declared)
    const loaded = await loadPackage(context, remote, options)
    const expectedHead =
      given ?? headOf(await remote.call(readStatus), loaded.manifest.workspace).expectedHead
    if (given === undefined) await context.output.note(`expected head ${expectedHead}`)
    const request = publish(remote, { frame: loaded.frame, expectedHead, provenance })
    const published = await context.output.progress('publishing', request).catch((error) => {
      throw isFault(error, 'PRODUCT_CAS_CONFLICT') ? staleHead(error, expectedHead) : error
    })
    await context.output.result({ ...published, expectedHead, provenance }, [
      `${published.replayed ? 'Published before' : 'Published'}: ${published.workspace}`,
      ...context.output.table(
        ['REVISION', 'RELEASE'],
        [[published.revisionId, published.releaseId]],
      ),
      `Next: svc release --release ${published.releaseId}`,
    ])
  },
})

function staleHead(fault: Fault, expectedHead: string): Fault {
  return explained(fault, {
    detail: `The head of the Workspace is not ${expectedHead}.`,
    next: 'Read the head with `svc status`, check what was published, then publish again.',
  })
}

function parseHead(text: string | undefined): Expected<WorkspaceRevisionId> | undefined {
  if (text === undefined || text === EMPTY || isId('wsr', text)) return text
  throw usage('--expected-head needs `empty` or a wsr_ identifier.', publishCommand)
}

export interface Head {
  readonly expectedHead: Expected<WorkspaceRevisionId>
  /** Null if the Workspace has no revision. */
  readonly releaseId: ReleaseId | null
}

export function headOf(status: Status, workspace: string): Head {
  const found = status.workspaces.find(({ name }) => name === workspace)
  if (found === undefined) return { expectedHead: EMPTY, releaseId: null }
  return { expectedHead: found.revisionId, releaseId: found.releaseId }
}
