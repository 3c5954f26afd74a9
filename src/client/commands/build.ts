/** `svc build`: builds a Workspace into a package file. */
import { sha256Hex } from '../../system/digests.ts'
import { writeFileAtomic } from '../../system/files.ts'
import { command, option } from '../contexts.ts'
import { withPath } from '../files.ts'
import { buildWorkspace, check, NO_TYPECHECK } from '../packages.ts'
import { openRoot, resolvePath } from '../roots.ts'

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
    'no-typecheck': NO_TYPECHECK,
  },
  examples: ['svc build --root . --out app.svcpkg'],
  async run(context, { root, out, ...options }) {
    const { frame, warnings } = await buildWorkspace(
      context,
      await openRoot(context.environment, root),
      options,
    )
    for (const warning of warnings) await context.output.note(`warning: ${warning}`)
    const { manifest, packageDigest } = await check(frame)
    const path = out === undefined ? null : resolvePath(context.environment, out)
    if (path !== null) {
      withPath(path, () => writeFileAtomic(path, frame, { mode: PACKAGE_FILE_MODE }))
    }
    const functions = manifest.functions.length
    const tables = manifest.tables.length
    const bytes = frame.length
    await context.output.result(
      {
        version: 1,
        workspace: manifest.workspace,
        packageDigest,
        fileDigest: `sha256:${sha256Hex(frame)}`,
        bytes,
        functions,
        tables,
        file: path,
        warnings: [...warnings],
      },
      [
        `Built ${manifest.workspace}: ${functions} Functions, ${tables} tables, ${bytes} bytes.`,
        ...(path === null ? [] : [`Wrote ${path}.`]),
        `Digest ${packageDigest}`,
      ],
    )
  },
})
