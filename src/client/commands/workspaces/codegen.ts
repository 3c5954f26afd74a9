/** `svc codegen`: writes the types of a Workspace into it, or its client into an application. */
import { command, option } from '../../contexts.ts'
import { requireTools, workspaceDirectoryOf } from '../../packages.ts'
import { openRoot, resolvePath } from '../../roots/roots.ts'
import { usage } from '../../usage.ts'

export const codegenCommand = command({
  name: 'codegen',
  summary: 'Generate the types of a Workspace, or the client of an application',
  details: [
    'Without --client it writes _generated/ into the Workspace, and the client that svc.json',
    'names, as a build does. With --client it writes api.ts, the typed references to the',
    'Functions, and the package svc, which has svc/client and svc/react, into that directory:',
    '`npm install ./DIR/svc` needs no registry.',
  ],
  options: {
    root: option('DIR', 'The initialized or linked root; by default the working directory'),
    workspace: option('DIR', 'The Workspace; by default the one that the root names'),
    client: option('DIR', 'A directory of the application; it is created'),
  },
  examples: ['svc codegen --workspace app --client web/src/generated'],
  async run(context, { root, workspace, client }) {
    const { environment, output } = context
    let workspaceDirectory: string
    if (workspace !== undefined) workspaceDirectory = resolvePath(environment, workspace)
    else {
      const opened = await openRoot(environment, root)
      if (opened.descriptor.workspace === null) {
        throw usage('The root names no Workspace. Give --workspace DIR.')
      }
      workspaceDirectory = workspaceDirectoryOf(environment, opened, undefined)
    }
    const tools = await requireTools(context, 'Generating code')
    const clientDirectory = client === undefined ? null : resolvePath(environment, client)
    const generation = tools.generate({ workspaceDirectory, clientDirectory })
    const { changed, warnings } = await output.progress('building the Workspace', generation)
    for (const warning of warnings) await output.note(`warning: ${warning}`)
    await output.result(
      { version: 1, changed: [...changed], warnings: [...warnings] },
      changed.length === 0 ? ['Everything is current.'] : changed.map((path) => `Wrote ${path}.`),
    )
  },
})
