"""python-rucaptcha's class for CaptchaAI: requests or, async, aiohttp; classic, JSON. Whatever it says is multipart, its polls
as well, and an id that is no string is an error to it."""

import driver

order = driver.prepare()

from python_rucaptcha.captchaai import CaptchaAI, CaptchaAIFile  # noqa: E402

driver.watch_requests()
driver.watch_aiohttp()

# It gives up after 19 polls.
PAUSE = 2


def options(order):
    page, key = order.page, order.site_key
    site = {"googlekey": key, "pageurl": page}
    through = {"proxy": order.proxy, "proxytype": order.proxy_type}
    match order.what:
        case "image":
            return {"profile": "normal-file", "files": {"file": CaptchaAIFile(order.image, "captcha.gif", "image/gif")}}
        case "image_text":
            return {"profile": "normal-base64", "params": {"body": order.image_text}}
        case "image_at_once":
            return {"profile": "normal-solve-base64", "params": {"body": order.image_text}}
        case "grid":
            words = {"body": order.image_text, "instructions": "traffic lights", "grid_size": "3x3"}
            return {"profile": "grid-base64", "params": words}
        case "recaptcha_v2":
            return {"profile": "recaptcha-v2", "params": site}
        case "recaptcha_v2_enterprise":
            return {"profile": "recaptcha-v2-enterprise", "params": site}
        case "recaptcha_v3":
            return {"profile": "recaptcha-v3", "params": {**site, "action": "login"}}
        case "turnstile":
            return {"profile": "turnstile", "params": {"sitekey": key, "pageurl": page}}
        case "geetest":
            words = {"gt": order.gt, "challenge": order.challenge, "pageurl": page}
            return {"profile": "geetest-v3", "params": words}
        case "cloudflare_challenge":
            return {"profile": "cloudflare-challenge", "params": {"pageurl": page, **through}}
        case "balance" | "threads":
            return {"profile": "recaptcha-v2"}
    raise driver.NotOffered(order)


def answer(solution, order):
    match order.what:
        case "image" | "image_text" | "image_at_once":
            return solution["text"]
        case "grid":
            return solution["click"]
        case "cloudflare_challenge":
            return solution["cf_clearance"]
        case "geetest":
            return solution if "validate" in solution else solution["request"]
    return solution["token"]


async def solve(order):
    client = CaptchaAI(order.key, sleep_time=PAUSE, **options(order))
    client.options.url_request = f"{order.base}/in.php"
    client.options.url_response = f"{order.base}/res.php"
    is_async = order.how == "async"
    if order.what == "balance":
        reply = await driver.settled(client.aio_get_balance() if is_async else client.get_balance())
        return reply["balance"]
    if order.what == "threads":
        return await driver.settled(client.aio_get_threads_info() if is_async else client.get_threads_info())
    reply = await driver.settled(client.aio_captcha_handler() if is_async else client.captcha_handler())
    if reply.get("status") != "ready":
        raise ValueError(reply)
    found = answer(reply["solution"], order)
    return found if reply.get("taskId") is None else (found, reply["taskId"])


driver.run(solve, order)
