/** `svc completion`: prints a script that completes the commands of this version. */
import { SHELLS } from '../../../shells/completion.ts'
import { argument, type CommandSpec, command } from '../../contexts.ts'

/** Declares the command; `commands` returns all commands, of which it is one. */
export function completionCommand(commands: () => readonly CommandSpec[]): CommandSpec {
  return command({
    name: 'completion',
    summary: 'Print a script that completes commands in a shell',
    details: [
      'The script has the commands, options and values of this version as text: it sends no',
      'request and does not start svc. install.sh installs it; `svc docs cli` says where to.',
      '`svc-server completion` prints the one of the server.',
    ],
    positionals: [{ ...argument('SHELL', SHELLS.join(', ')), values: SHELLS }],
    options: {},
    examples: [
      'source <(svc completion bash)',
      'svc completion zsh > ~/.zfunc/_svc',
      'svc completion fish > ~/.config/fish/completions/svc.fish',
    ],
    async run({ output }, _, [shell]) {
      const { completionScript, isShell } = await import('../../../shells/completion.ts')
      const { completedClient } = await import('../../command-line/completed-program.ts')
      if (!isShell(shell)) return
      const script = completionScript(shell, completedClient(commands()))
      await output.result({ version: 1, shell, script }, [script.trimEnd()])
    },
  })
}
