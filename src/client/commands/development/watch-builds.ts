/** `svc build --watch`: builds after each change of the Workspace, until it is interrupted. */
import { isFault } from '../../../errors/fault.ts'
import type { Context } from '../../contexts.ts'
import { requireTools } from '../../packages.ts'

/**
 * Runs `build` now and after each change of the directory. A build that fails is printed, and the
 * next change is waited for. Returns when the command is interrupted.
 */
export async function watchBuilds(
  context: Context,
  workspaceDirectory: string,
  build: () => Promise<void>,
): Promise<void> {
  const { output, signal } = context
  const tools = await requireTools(context, 'Watching a Workspace')
  context.endsInOrder()
  await tools.watch({
    workspaceDirectory,
    signal,
    onChange: async () => {
      try {
        await build()
      } catch (error) {
        if (!isFault(error)) throw error
        const { code, message, detail } = error
        const text = detail === undefined ? message : `${message}\n${detail}`
        const document = { version: 1, error: { code, message: text, retryable: false } }
        await output.line(document, `${output.styled('red', code)}: ${text}`)
      }
    },
    onNotice: (notice) => output.note(notice),
  })
}
