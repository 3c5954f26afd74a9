/** Calls that the client or the application origin rejects. */
import { argv } from '../argv.ts'
import type { Situation } from './situations.ts'

const AT_PRODUCTION = argv`
  --root {root} --url {application} --key-env KEY --target channel:production
`

export const CALLS: readonly Situation[] = [
  {
    situation: 'the variable of the key holds no key',
    run: argv`svc call channels.list ${AT_PRODUCTION}`,
    environment: { KEY: 'secret' },
    exit: 2,
    message: [
      'svc: CLIENT_USAGE: The variable KEY holds no Application Key (rk_pub_v1_... or ' +
        'rk_sec_v1_...).',
      '  See `svc call --help`.',
    ],
  },
  {
    situation: 'the key is not valid',
    run: argv`svc call channels.list ${AT_PRODUCTION}`,
    environment: { KEY: '{wrongKey}' },
    exit: 3,
    message: [
      'svc: APPLICATION_KEY_INVALID: The Application Key is not valid.',
      '  Use a key that is active in this Environment.',
      '  request {request}',
    ],
  },
  {
    situation: 'the key lacks the scope of the Function',
    run: argv`svc call channels.create {"name":"a","author":"b"} ${AT_PRODUCTION}`,
    environment: { KEY: '{readerKey}' },
    exit: 3,
    message: [
      'operation {operation}',
      'svc: AUTH_POLICY_DENIED: The key or identity may not call this Function.',
      '  Run `svc logs --request {request}`, which names the rule. Where the key ' +
        'lacks the scope mutation, create a Client and a key of it that have the scope: both ' +
        'commands take --scopes.',
      '  request {request}',
    ],
  },
  {
    situation: 'the Function does not exist',
    run: argv`svc call channels.delete ${AT_PRODUCTION}`,
    environment: { KEY: '{key}' },
    exit: 7,
    message: [
      'svc: FUNCTION_NOT_FOUND: The target has no such public Function of this kind. It ' +
        'has channels.create, channels.list, messages.list, messages.send.',
      '  Check the Function name and its kind.',
    ],
  },
  {
    situation: 'an argument is missing',
    run: argv`svc call channels.create {"name":"a"} ${AT_PRODUCTION}`,
    environment: { KEY: '{key}' },
    exit: 8,
    message: [
      'svc: ARGUMENTS_INVALID: The arguments do not match the validators of the Function.',
      '  $.author: a required field',
      '  Correct the arguments: compare them with the argument validators of the ' + 'Function.',
    ],
  },
  {
    situation: 'an argument is not declared',
    run: argv`svc call channels.list {"limit":1} ${AT_PRODUCTION}`,
    environment: { KEY: '{key}' },
    exit: 8,
    message: [
      'svc: ARGUMENTS_INVALID: The arguments do not match the validators of the Function.',
      '  $.limit: no field',
      '  Correct the arguments: compare them with the argument validators of the ' + 'Function.',
    ],
  },
  {
    situation: 'the arguments are not JSON',
    run: argv`svc call channels.list {limit:1} ${AT_PRODUCTION}`,
    environment: { KEY: '{key}' },
    exit: 8,
    message: [
      'svc: ARGUMENTS_INVALID: The arguments do not match the validators of the Function.',
      '  $ at character 1: a key',
      '  Correct the arguments: compare them with the argument validators of the ' + 'Function.',
    ],
  },
  {
    situation: 'an integer is beyond 2^53',
    run: argv`svc call channels.list {"limit":9007199254740993} ${AT_PRODUCTION}`,
    environment: { KEY: '{key}' },
    exit: 8,
    message: [
      'svc: ARGUMENTS_INVALID: The arguments do not match the validators of the Function.',
      '  $ at character 9: an integer within 2^53; write a larger one as a string',
      '  Correct the arguments: compare them with the argument validators of the ' + 'Function.',
    ],
  },
  {
    situation: 'the arguments are given twice',
    run: argv`svc call channels.list {} --args-file {missing} ${AT_PRODUCTION}`,
    environment: { KEY: '{key}' },
    exit: 2,
    message: [
      'svc: CLIENT_USAGE: Give the arguments once: as an argument or with --args-file.',
      '  See `svc call --help`.',
    ],
  },
  {
    situation: 'a Query has an operation ID',
    run: argv`svc call channels.list ${AT_PRODUCTION} --operation-id {unknownOperation}`,
    environment: { KEY: '{key}' },
    exit: 2,
    message: [
      'svc: CLIENT_USAGE: --operation-id is for Mutations; this is a Query.',
      '  See `svc call --help`.',
    ],
  },
  {
    situation: 'the Channel of the target does not exist',
    run: argv`
      svc call channels.list --root {root} --url {application} --key-env KEY
      --target channel:canary
    `,
    environment: { KEY: '{key}' },
    exit: 7,
    message: [
      'svc: PRODUCT_NOT_FOUND: The Product resource does not exist.',
      '  target channel:canary: a Channel, Release, Workspace or policy that has a ' + 'Release',
      '  Run `svc status` to see what exists.',
      '  request {request}',
    ],
  },
  {
    situation: 'the address of the application is wrong',
    run: argv`
      svc call channels.list --root {root} --url http://{closed} --key-env KEY
      --target channel:production
    `,
    environment: { KEY: '{key}' },
    exit: 5,
    message: [
      'svc: CLIENT_SERVER_UNREACHABLE: The server did not respond. http://{closed}: ' +
        'ECONNREFUSED.',
      '  Check the address and that the server is running, then try again.',
    ],
  },
]
