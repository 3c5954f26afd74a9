/** The declared origin of a publication: a message, the commit, the run of a pipeline. */
import { encodeBase64Url } from '../../value/base64url.ts'
import {
  BRANCH_CHARACTERS_MAX,
  COMMIT,
  isLine,
  MESSAGE_CHARACTERS_MAX,
  type Provenance,
  RUN_ID_CHARACTERS_MAX,
  RUN_URL,
} from '../../value/packages/provenance.ts'
import { EXPECTED_HEAD_HEADER, PROVENANCE_HEADER } from '../../wire/workspace.ts'
import { type CommandSpec, type Context, option } from '../contexts.ts'
import { usage } from '../usage.ts'
import { readWorkTree } from './git.ts'
import { type Pipeline, readPipeline } from './pipelines.ts'

export const PROVENANCE_OPTIONS = {
  message: option('TEXT', 'What changed, in one line; shown with the Release'),
} as const

export const PROVENANCE_DETAILS = [
  'Commit, branch and whether files differ from it are read from Git, and the run of the pipeline',
  'from the variables of GitHub Actions, GitLab or Buildkite. They are stored beside the revision',
  'and are no part of the package.',
]

/**
 * Reads the message of the line, Git in `directory`, and the variables of a pipeline. A package
 * that was built elsewhere has no directory: what is checked out says nothing about it. Returns
 * null if nothing is known. Throws CLIENT_USAGE for a message that is not one line.
 */
export async function readProvenance(
  { environment }: Context,
  command: CommandSpec,
  {
    message,
    directory,
  }: { readonly message: string | undefined; readonly directory: string | null },
): Promise<Provenance | null> {
  const text = message?.normalize('NFC') ?? null
  if (text !== null && !isLine(text, MESSAGE_CHARACTERS_MAX)) {
    const rule = `one line of 1 to ${MESSAGE_CHARACTERS_MAX} characters`
    throw usage(`--message needs ${rule}, none of them a control one.`, command)
  }
  const tree = directory === null ? null : await readWorkTree(environment.git, directory)
  const pipeline = readPipeline((name) => environment.variable(name))
  // The work tree is what was built; only the platform knows the branch of a detached one.
  const commit = tree?.commit ?? pipeline?.commit ?? null
  const branch = fitting(pipeline?.branch ?? tree?.branch ?? null, (name) => {
    return isLine(name, BRANCH_CHARACTERS_MAX)
  })
  const found: Provenance = {
    message: text,
    commit: fitting(commit, (name) => COMMIT.test(name)),
    branch,
    dirty: tree?.dirty ?? null,
    run: runOf(pipeline),
  }
  return Object.values(found).every((part) => part === null) ? null : found
}

/** Leaves out what the server would reject: a release does not fail because of its description. */
function fitting(text: string | null, fits: (text: string) => boolean): string | null {
  return text !== null && fits(text) ? text : null
}

function runOf(pipeline: Pipeline | null): Provenance['run'] {
  if (pipeline === null || !isLine(pipeline.run.id, RUN_ID_CHARACTERS_MAX)) return null
  const { provider, id, url } = pipeline.run
  return { provider, id, url: fitting(url, (text) => RUN_URL.test(text)) }
}

const COMMIT_CHARACTERS_SHOWN = 12

/** Formats a source such as `main@0123456789ab+ github 42`; the plus marks a dirty work tree. */
export function sourceText(provenance: Provenance | null): string {
  if (provenance === null) return '-'
  const { commit, branch, dirty, run } = provenance
  const at = commit === null ? '' : `@${commit.slice(0, COMMIT_CHARACTERS_SHOWN)}`
  const tree = `${branch ?? ''}${at}${dirty === true ? '+' : ''}`
  const parts = [tree, run === null ? '' : `${run.provider} ${run.id}`]
  return parts.filter((part) => part !== '').join(' ') || '-'
}

/** Returns the headers that declare the expected head and the provenance of a package. */
export function publicationHeaders({
  expectedHead,
  provenance,
}: {
  readonly expectedHead: string
  readonly provenance: Provenance | null
}) {
  const encoded =
    provenance === null
      ? undefined
      : encodeBase64Url(new TextEncoder().encode(JSON.stringify(provenance)))
  return { [EXPECTED_HEAD_HEADER]: expectedHead, [PROVENANCE_HEADER]: encoded }
}
