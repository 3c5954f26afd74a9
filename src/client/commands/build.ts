/** `svc build`: builds a Workspace into a package file. */
import { sha256Hex } from '../../system/digests.ts'
import { writeFileAtomic } from '../../system/files.ts'
import { type Context, command, flag, option } from '../contexts.ts'
import { withPath } from '../files.ts'
import {
  buildWorkspace,
  check,
  NO_TYPECHECK,
  type PackageOptions,
  workspaceDirectoryOf,
} from '../packages.ts'
import { openRoot, type Root, resolvePath } from '../roots/roots.ts'
import { watchBuilds } from './development/watch-builds.ts'

const PACKAGE_FILE_MODE = 0o644

export const buildCommand = command({
  name: 'build',
  summary: 'Build a Workspace into a package',
  details: [
    'The same source always gives the same bytes. Without --out the Workspace is only checked.',
    'Types are checked by the TypeScript of the Workspace, or without one by that of svc.',
  ],
  options: {
    root: option('DIR', 'The initialized or linked root; by default the working directory'),
    workspace: option('DIR', 'The Workspace; by default the one that the root names'),
    out: option('FILE', 'Where to write the package'),
    watch: flag('Build again after each change, until it is interrupted'),
    'no-typecheck': NO_TYPECHECK,
  },
  examples: ['svc build --root . --out app.svcpkg', 'svc build --root . --watch'],
  async run(context, { root: path, out, watch, ...options }) {
    const root = await openRoot(context.environment, path)
    const build = () => buildOnce(context, { ...options, root, out, isRepeated: watch })
    if (!watch) return build()
    const { environment } = context
    return watchBuilds(context, workspaceDirectoryOf(environment, root, options.workspace), build)
  },
})

interface BuildOptions extends Pick<PackageOptions, 'workspace' | 'no-typecheck'> {
  readonly root: Root
  readonly out: string | undefined
  /** True if several results follow each other, so that each is one line. */
  readonly isRepeated: boolean
}

async function buildOnce(
  context: Context,
  { root, out, isRepeated, ...options }: BuildOptions,
): Promise<void> {
  const { frame, warnings } = await buildWorkspace(context, root, options)
  for (const warning of warnings) await context.output.note(`warning: ${warning}`)
  const { manifest, packageDigest } = await check(frame)
  const path = out === undefined ? null : resolvePath(context.environment, out)
  if (path !== null) {
    withPath(path, () => writeFileAtomic(path, frame, { mode: PACKAGE_FILE_MODE }))
  }
  const functions = manifest.functions.length
  const tables = manifest.tables.length
  const bytes = frame.length
  const document = {
    version: 1,
    workspace: manifest.workspace,
    packageDigest,
    fileDigest: `sha256:${sha256Hex(frame)}`,
    bytes,
    functions,
    tables,
    file: path,
    warnings: [...warnings],
  }
  const lines = [
    `Built ${manifest.workspace}: ${functions} Functions, ${tables} tables, ${bytes} bytes.`,
    ...(path === null ? [] : [`Wrote ${path}.`]),
    `Digest ${packageDigest}`,
  ]
  if (isRepeated) await context.output.line(document, lines.join('\n'))
  else await context.output.result(document, lines)
}
