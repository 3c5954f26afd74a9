/** `svc upgrade`: replaces the executables of this machine by those of a signed release. */
import { command, flag, option } from '../../contexts.ts'
import { type UpgradeOutcome, upgrade } from '../../upgrade/upgrades.ts'

export const upgradeCommand = command({
  name: 'upgrade',
  summary: 'Replace svc and svc-server on this machine by a newer signed release',
  details: [
    'It verifies the signature of the release, lets the new version run its check with the',
    'settings of the server on this machine, replaces both executables, restarts the server and',
    'waits until it is ready. If it does not become ready, the previous version is restored. The',
    'previous executable stays beside the new one as svc-server.previous. --check does everything',
    'up to the replacement. An upgrade that is one way needs --yes. `svc docs upgrade` has more.',
  ],
  options: {
    check: flag('Say what would be done, and replace nothing'),
    from: option('ADDRESS', 'An https URL or a directory with the files of a release'),
    version: option('VERSION', 'Take this version only; it replaces {version} in the address'),
    'public-key-file': option('FILE', 'A public key of minisign, in place of the built-in one'),
    'allow-downgrade': flag('Permit a release that is older than the installed version'),
    yes: flag('Permit an upgrade after which the installed version cannot start'),
    'without-backup': flag('Permit such an upgrade without a backup before it'),
  },
  examples: ['svc upgrade --check', 'svc upgrade', 'svc upgrade --from /media/release --yes'],
  async run(context, options) {
    const outcome = await upgrade(context, {
      from: options.from,
      version: options.version,
      publicKeyFile: options['public-key-file'],
      allowsDowngrade: options['allow-downgrade'],
      checks: options.check,
      yes: options.yes,
      withoutBackup: options['without-backup'],
    })
    await context.output.result(documentOf(outcome), linesOf(outcome))
  },
})

function documentOf({ service, check, ...outcome }: UpgradeOutcome) {
  return {
    version: 1,
    ...outcome,
    kept: [...outcome.kept],
    service: service === null ? null : { manager: service.manager, name: service.name },
    oneWay: check?.isOneWay ?? null,
    backup: check?.backup ?? null,
  }
}

function linesOf(outcome: UpgradeOutcome): string[] {
  const { from, to, signedAt, directory, check } = outcome
  switch (outcome.outcome) {
    case 'current':
      return [`${to} is installed in ${directory}. The release was signed at ${signedAt}.`]
    case 'checked':
      return [
        `${from} in ${directory} would be replaced by ${to}, signed at ${signedAt}.`,
        ...(check === null ? [] : ['', check.text, '']),
        ...serverLines(outcome, 'would be'),
      ]
    case 'upgraded':
      return [
        `Upgraded ${directory} from ${from} to ${to}.`,
        ...serverLines(outcome, 'was'),
        ...outcome.kept.map((path) => `Left as it is: ${path}`),
      ]
  }
}

function serverLines({ service, wasRunning }: UpgradeOutcome, tense: 'was' | 'would be'): string[] {
  if (service === null) {
    return [
      'No service of this machine starts svc-server from there. Restart a server that runs, after',
      '`svc-server upgrade --check` with its settings.',
    ]
  }
  const { name, manager } = service
  if (!wasRunning) return [`${name} (${manager}) does not run, so it ${tense} not started.`]
  const end = tense === 'was' ? ' and is ready' : ''
  return [`${name} (${manager}) ${tense} restarted${end}.`]
}
