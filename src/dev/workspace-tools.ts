/** The tools of the command line for Workspaces. The callers print results and failures. */
import type { WorkspaceTools } from '../client/contexts.ts'
import type { Describe } from './build.ts'
import { runBuild } from './commands.ts'
import { writeWorkspace } from './new-workspaces.ts'
import { encodeWorkspacePackage } from './package.ts'
import { formatProblem } from './problems.ts'

/** The part of the command line that needs the executable. */
export function workspaceTools({ describe }: { readonly describe: Describe }): WorkspaceTools {
  return {
    async build({ workspaceDirectory, projectId }) {
      const { build } = await runBuild({ workspaceDirectory, describe })
      const frame = encodeWorkspacePackage(build, projectId)
      return { frame, warnings: build.diagnostics.map(formatProblem) }
    },
    writeWorkspace: async ({ workspaceDirectory, name }) =>
      writeWorkspace(workspaceDirectory, { name }),
    async watch(request) {
      const { watchWorkspace } = await import('./watching/watch.ts')
      return watchWorkspace(request)
    },
    async develop(request) {
      // The parts of a server, which a build does not load.
      const { runDevelopment } = await import('./local/svc-dev.ts')
      return runDevelopment(request)
    },
  }
}
