/** `svc mcp`: the door of an agent in an editor, and the permissions of agents. */
import { type CommandSpec, command, repeatedChoice } from '../../contexts.ts'
import { ALLOWABLE } from '../../mcp/capabilities.ts'
import { usage } from '../../usage.ts'
import { REMOTE } from '../operations.ts'
import { permissionCommands } from './permissions.ts'

const mcpCommand: CommandSpec = command({
  name: 'mcp',
  summary: 'Let the agent of an editor read the Environment, over stdin and stdout',
  details: [
    'Editors start it: `svc init` writes .mcp.json, which names it. It speaks the Model Context',
    'Protocol with a session of its own, which reads everything but documents. --allow asks for',
    'more, which takes effect once a person has permitted it with `svc mcp allow`.',
  ],
  options: {
    ...REMOTE,
    allow: repeatedChoice(
      'CAPABILITY',
      ALLOWABLE,
      'Use this too, where a person permits it: data:read',
    ),
  },
  examples: ['svc mcp --root ./my-app', 'svc mcp --root ./my-app --allow data:read'],
  async run(context, { allow, ...at }) {
    const { stdin, stdout } = context.environment
    if (stdin.isTTY || stdout.isTTY) {
      throw usage('Editors start `svc mcp`, with pipes. `svc docs agents` says how.', mcpCommand)
    }
    const { AgentSession } = await import('../../mcp/agent-session.ts')
    const { serveAgent } = await import('../../mcp/server.ts')
    context.endsInOrder()
    await serveAgent(context, new AgentSession(context, { at, asked: allow }))
  },
})

export const mcpCommands: readonly CommandSpec[] = [mcpCommand, ...permissionCommands]
