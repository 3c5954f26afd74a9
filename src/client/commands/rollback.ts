/** `svc rollback`: binds a Channel to a Release that it was bound to before. */
import { rollbackChannel } from '../../wire/operations/channels.ts'
import { type CommandSpec, command, requiredOption } from '../contexts.ts'
import { openRemote } from '../roots/remotes.ts'
import { LINKED } from './operations.ts'
import { bindOrReconcile, parseChannel, parseReleaseId } from './promote.ts'

export const rollbackCommand: CommandSpec = command({
  name: 'rollback',
  summary: 'Bind a Channel to an earlier Release of its history',
  details: [
    '`svc status` shows the history. Stored documents stay, so the earlier Release must be able to',
    'read them. Calls in flight finish on their Release.',
  ],
  options: {
    ...LINKED,
    channel: requiredOption('NAME', 'The Channel'),
    expected: requiredOption('rel_ID', 'The Release that the Channel must be bound to now'),
    to: requiredOption('rel_ID', 'The earlier Release'),
  },
  examples: ['svc rollback --channel production --expected rel_... --to rel_...'],
  async run(context, options) {
    const channel = parseChannel(options.channel, rollbackCommand)
    const expectedReleaseId = parseReleaseId(options.expected, rollbackCommand, 'expected')
    const targetReleaseId = parseReleaseId(options.to, rollbackCommand, 'to')
    const remote = await openRemote(context, options)
    const bound = await bindOrReconcile(context, remote, {
      channel,
      releaseId: targetReleaseId,
      label: 'rolling back',
      request: remote.call(rollbackChannel, {
        params: { channel },
        body: { targetReleaseId, expectedReleaseId },
        subjects: { channel, targetReleaseId },
      }),
    })
    await context.output.result({ version: 1, ...bound }, [
      `${channel} is bound to ${targetReleaseId} again (revision ${bound.revision}).`,
    ])
  },
})
