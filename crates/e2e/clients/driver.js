// The shared part of the JavaScript drivers: one command line, one line of JSON at the end, and on standard error one
// line for each HTTP reply to the client. The clients are unmodified from their registries; the driver watches them.
'use strict';

const crypto = require('node:crypto');
const http = require('node:http');
const https = require('node:https');
const path = require('node:path');
const { parseArgs } = require('node:util');

// The most characters of a reply that are shown.
const SHOWN_MAX = 300;

const { values: words } = parseArgs({
    options: {
        base: { type: 'string' },
        key: { type: 'string' },
        what: { type: 'string' },
        mark: { type: 'string', default: 'mark' },
        how: { type: 'string', default: 'sync' },
        report: { type: 'string' },
        ca: { type: 'string' },
    },
});

// Node reads this variable once, when it starts.
if (words.ca && process.env.NODE_EXTRA_CA_CERTS !== words.ca) {
    fail(new Error(`start it with NODE_EXTRA_CA_CERTS=${words.ca}`));
    process.exit(0);
}

// Some clients print replies that they do not understand.
console.log = console.error;

function say(line) {
    process.stdout.write(`${JSON.stringify(line)}\n`);
}

function fail(error) {
    say({ ok: false, error: `${error?.name ?? 'Error'}: ${error?.message ?? error}` });
}

// Listens without a listener: a reader of its own would set the reply flowing before the client is there.
function watch(response, sent) {
    const emit = response.emit;
    const parts = [];
    response.emit = function (event, ...more) {
        if (event === 'data') parts.push(Buffer.from(more[0]));
        if (event === 'end') {
            const body = Buffer.concat(parts).toString().slice(0, SHOWN_MAX);
            const line = { path: sent.path.split('?')[0], status: response.statusCode, body };
            process.stderr.write(`${JSON.stringify(line)}\n`);
        }
        return emit.call(this, event, ...more);
    };
}

for (const wire of [http, https]) {
    const request = wire.request;
    wire.request = function (...more) {
        const sent = request.apply(wire, more);
        sent.prependListener('response', (response) => watch(response, sent));
        return sent;
    };
}

const digest = crypto.createHash('sha256').update(words.mark).digest('hex');
// An image as far as a client checks it, different for each mark.
const head = '47494638396140002000800000000000ffffff2c00000000400020000002';
const picture = Buffer.from(`${head}${digest.repeat(40)}003b`, 'hex');

/** The order to solve. Everything in it follows from the mark, so one mark is one order. */
const order = {
    base: words.base.replace(/\/$/, ''),
    key: words.key,
    what: words.what,
    report: words.report,
    page: `https://${words.mark}.example.com/login`,
    siteKey: `6Le-${words.mark}-0123456789abcdefghijklmnop`,
    gt: digest.slice(0, 32),
    challenge: digest.slice(32),
    agent: 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36',
    proxy: { type: 'http', host: '127.0.0.1', port: 3128, login: 'user', password: 'secret' },
    question: `What stands in ${words.mark}?`,
    image: picture.toString('base64'),
};

const notOffered = () => new Error(`this client cannot do ${order.what}`);

/** A file of an installed client. */
function installed(name) {
    const root = path.join(__dirname, '..', '..', '..');
    const place = path.resolve(root, process.env.QUITTANCE_CLIENTS ?? path.join('target', 'clients'));
    return path.join(place, 'node', 'node_modules', name);
}

/** Solves the order, and prints the outcome; `solve` returns the answer, and the id if the client shows it. */
async function run(solve) {
    try {
        const { answer, id } = await solve(order);
        const text = typeof answer === 'string' ? answer : JSON.stringify(answer);
        say({ ok: true, answer: text, ...(id === undefined ? {} : { id: String(id) }) });
    } catch (error) {
        fail(error);
    }
}

module.exports = { installed, notOffered, order, run };
