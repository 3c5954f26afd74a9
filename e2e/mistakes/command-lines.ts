/** Command lines that cannot be run as they were typed. */
import { argv } from '../argv.ts'
import type { Situation } from './situations.ts'

export const COMMAND_LINES: readonly Situation[] = [
  {
    situation: 'a command is misspelled',
    run: argv`svc relase`,
    exit: 2,
    message: [
      'svc: CLIENT_USAGE: Unknown command relase. Did you mean release?',
      '  See `svc --help`.',
    ],
  },
  {
    situation: 'an option is misspelled',
    run: argv`svc status --rot {root}`,
    exit: 2,
    message: [
      'svc: CLIENT_USAGE: Unknown option --rot. Did you mean --root?',
      '  See `svc status --help`.',
    ],
  },
  {
    situation: 'an option has no value',
    run: argv`svc status --root`,
    exit: 2,
    message: [
      'svc: CLIENT_USAGE: --root needs a value; write --root=VALUE if it begins with -.',
      '  See `svc status --help`.',
    ],
  },
  {
    situation: 'a required option is missing',
    run: argv`svc login`,
    exit: 2,
    message: [
      'svc: CLIENT_USAGE: --url <ORIGIN> is required: Origin of the management service.',
      '  See `svc login --help`.',
    ],
  },
  {
    situation: 'an option is given twice',
    run: argv`svc status --root {root} --root {root}`,
    exit: 2,
    message: ['svc: CLIENT_USAGE: --root is given twice.', '  See `svc status --help`.'],
  },
  {
    situation: 'an argument is too much',
    run: argv`svc status production --root {root}`,
    exit: 2,
    message: ['svc: CLIENT_USAGE: Unexpected production.', '  See `svc status --help`.'],
  },
  {
    situation: 'a group of commands is given without a verb',
    run: argv`svc clients`,
    exit: 2,
    message: ['svc: CLIENT_USAGE: clients needs one of: create, list.', '  See `svc --help`.'],
  },
  {
    situation: 'a code is pasted as a command',
    run: argv`svc {code}`,
    exit: 2,
    message: [
      'svc: CLIENT_USAGE: Unknown command (a credential: never pass one as an argument).',
      '  See `svc --help`.',
    ],
  },
  {
    situation: 'a code is pasted in place of a variable',
    run: argv`svc login --url {management} --code-env {code}`,
    exit: 2,
    message: [
      'svc: CLIENT_USAGE: --code-env needs the name of a variable, not the secret ' +
        'itself. The secret may now be in the history of the shell: revoke it and issue a ' +
        'new one.',
      '  See `svc login --help`.',
    ],
  },
  {
    situation: 'the variable of the code is not set',
    run: argv`svc login --url {management} --code-env CODE`,
    exit: 2,
    message: [
      'svc: CLIENT_USAGE: The variable CODE is not set or empty.',
      '  See `svc login --help`.',
    ],
  },
  {
    situation: 'the variable of the code holds another text',
    run: argv`svc login --url {management} --code-env CODE`,
    environment: { CODE: 'secret' },
    exit: 2,
    message: [
      'svc: CLIENT_USAGE: The variable CODE is not an invitation code (rk_inv_v1_...).',
      '  See `svc login --help`.',
    ],
  },
  {
    situation: 'there is no terminal to type the code on',
    run: argv`svc login --url {management}`,
    exit: 2,
    message: [
      'svc: CLIENT_USAGE: There is no terminal to type the code on. Pass it with ' +
        '--code-env VAR.',
      '  See `svc login --help`.',
    ],
  },
  {
    situation: 'two ways to log in are given',
    run: argv`svc login --url {management} --browser --oidc-token-env TOKEN`,
    exit: 2,
    message: [
      'svc: CLIENT_USAGE: Give --browser or --oidc-token-env, not both.',
      '  See `svc login --help`.',
    ],
  },
  {
    situation: 'the address of a remote server is not HTTPS',
    run: argv`svc login --url http://manage.example.com --code-env CODE`,
    exit: 2,
    message: [
      'svc: CLIENT_ORIGIN_INVALID: A server origin must be HTTPS, or ' +
        'http://127.0.0.1:3220 for a local one.',
      '  Specify the exact origin, without a path.',
    ],
  },
  {
    situation: 'the address of a server has a path',
    run: argv`svc login --url https://manage.example.com/v1 --code-env CODE`,
    exit: 2,
    message: [
      'svc: CLIENT_ORIGIN_INVALID: A server origin must be HTTPS, or ' +
        'http://127.0.0.1:3220 for a local one.',
      '  Specify the exact origin, without a path.',
    ],
  },
  {
    situation: 'a Channel has an invalid name',
    run: argv`svc promote --root {root} --channel Production --release {unknownRelease}`,
    exit: 2,
    message: [
      'svc: CLIENT_USAGE: --channel needs a name such as production.',
      '  See `svc promote --help`.',
    ],
  },
  {
    situation: 'a name stands for the identifier of a Release',
    run: argv`svc promote --root {root} --channel production --release latest`,
    exit: 2,
    message: [
      'svc: CLIENT_USAGE: --release needs a rel_ identifier.',
      '  See `svc promote --help`.',
    ],
  },
  {
    situation: 'the weights of a policy do not add up',
    run: argv`svc serve-policy set --root {root} --releases {release}=500,{published}=500`,
    exit: 2,
    message: [
      'svc: CLIENT_USAGE: The weights of --releases must add up to 10000.',
      '  See `svc serve-policy set --help`.',
    ],
  },
  {
    situation: 'a secret is an argument',
    run: argv`svc config set API_KEY secret --secret --root {root}`,
    exit: 2,
    message: [
      'svc: CLIENT_USAGE: A secret cannot be an argument. It may now be in the history ' +
        'of the shell: revoke it, then pass a new one on standard input or with ' +
        '--value-env VAR.',
      '  See `svc config set --help`.',
    ],
  },
  {
    situation: 'the name of a variable is in lower case',
    run: argv`svc config set greeting hello --root {root}`,
    exit: 2,
    message: [
      'svc: CLIENT_USAGE: NAME needs 1 to 64 upper-case letters, digits and _, such as ' +
        'API_KEY.',
      '  See `svc config set --help`.',
    ],
  },
  {
    situation: 'no setting of the Environment is given',
    run: argv`svc environments update --root {root}`,
    exit: 2,
    message: [
      'svc: CLIENT_USAGE: No setting is given. Give at least one setting to change.',
      '  See `svc environments update --help`.',
    ],
  },
  {
    situation: 'the purpose of the Environment is invalid',
    run: argv`svc environments update --root {root} --purpose test`,
    exit: 2,
    message: [
      'svc: CLIENT_USAGE: --purpose must be one of development, preview, staging, production.',
      '  See `svc environments update --help`.',
    ],
  },
  {
    situation: 'a role does not exist',
    run: argv`svc invite --operator-name ana --role admin --scope installation`,
    exit: 2,
    message: [
      'svc: CLIENT_USAGE: --role must be one of owner, operator, developer, observer.',
      '  See `svc invite --help`.',
    ],
  },
  {
    situation: 'a scope does not exist',
    run: argv`svc invite --operator-name ana --role observer --scope world`,
    exit: 2,
    message: [
      'svc: CLIENT_USAGE: --scope must be one of installation, project, environment.',
      '  See `svc invite --help`.',
    ],
  },
  {
    situation: 'a kind of client does not exist',
    run: argv`svc clients create --root {root} --name web --kind browser`,
    exit: 2,
    message: [
      'svc: CLIENT_USAGE: --kind must be one of public, confidential, development.',
      '  See `svc clients create --help`.',
    ],
  },
]
